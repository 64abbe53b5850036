// Small servers on node's own library, one for each word.
const http = require('http'), fs = require('fs'), crypto = require('crypto');
const [word, port] = process.argv.slice(2);
const log = fs.openSync('log', 'w');
const line = new http.Agent({ keepAlive: true, maxSockets: 2 }), wide = new http.Agent({ keepAlive: true });
// Asks what listens at the next port, and passes its answer on.
const ask = (agent, reply) => http.get({ port: Number(port) + 1, agent }, (answer) => answer.pipe(reply));
const answers = {
  hello: (reply) => reply.end('hello'),
  sync: (reply) => { fs.writeSync(log, 'a line\n'); fs.fsyncSync(log); reply.end('hello'); },
  plain: (reply) => { fs.writeSync(log, 'a line\n'); reply.end('hello'); },
  line: (reply) => ask(line, reply),
  wide: (reply) => ask(wide, reply),
  hash: (reply) => reply.end(crypto.pbkdf2Sync('word', 'salt', 20000, 32, 'sha256').toString('hex')),
};
http.createServer((request, reply) => answers[word](reply)).listen(Number(port), '127.0.0.1');
