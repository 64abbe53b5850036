<?php
// A list of 5,000 numbers is made, one after another: by array_merge or by []= as the variant says.
while (true) {
    $all = [];
    for ($at = 0; $at < 5000; $at++) {
        if ($argv[1] === "merge") {
            $all = array_merge($all, [$at]);
        } else {
            $all[] = $at;
        }
    }
}
