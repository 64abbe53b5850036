// Small servers on node's own library, one for each word.
const http = require('http'), fs = require('fs'), crypto = require('crypto');
const [word, port] = process.argv.slice(2);
const log = fs.openSync('log', 'w');
const answers = {
  hello: (reply) => reply.end('hello'),
  sync: (reply) => { fs.writeSync(log, 'a line\n'); fs.fsyncSync(log); reply.end('hello'); },
  plain: (reply) => { fs.writeSync(log, 'a line\n'); reply.end('hello'); },
  hash: (reply) => reply.end(crypto.pbkdf2Sync('word', 'salt', 20000, 32, 'sha256').toString('hex')),
};
http.createServer((request, reply) => answers[word](reply)).listen(Number(port), '127.0.0.1');
