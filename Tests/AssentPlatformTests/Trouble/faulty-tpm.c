/* A TPM that fails: it reads commands and answers each in the same way (tcti-cmd's protocol: TPM 2.0 Part 1, 18). The argument is
   a response code, or what is wrong with the answer. Compiled by the tests. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int all(int file, uint8_t *bytes, size_t count) {
    while (count) {
        ssize_t done = read(file, bytes, count);
        if (done <= 0) return 0;
        bytes += done;
        count -= done;
    }
    return 1;
}

static void put(uint8_t *bytes, uint32_t value) {
    for (int index = 0; index < 4; index++) bytes[index] = value >> (24 - 8 * index);
}

int main(int count, char **arguments) {
    if (count != 2) return 64;
    /* tcti-cmd leaves the pipes of other TPMs open in its children, and those would then wait for each other's end. */
    close_range(3, ~0U, 0);
    const char *kind = arguments[1];
    uint8_t command[4096], answer[4096];
    for (;;) {
        if (!all(0, command, 10)) return 0;
        uint32_t size = (uint32_t)command[2] << 24 | command[3] << 16 | command[4] << 8 | command[5];
        if (size < 10 || size > sizeof command || !all(0, command + 10, size - 10)) return 65;
        memset(answer, 0xA5, sizeof answer);
        answer[0] = 0x80;
        answer[1] = 0x01;
        uint32_t length = 10, said = 10, code = 0;
        if (!strcmp(kind, "silent")) return 0;
        else if (!strcmp(kind, "nothing")) ;
        else if (!strcmp(kind, "noise")) said = length = 300;
        else if (!strcmp(kind, "shorter")) said = 4;
        else code = strtoul(kind, NULL, 0);
        put(answer + 2, said);
        put(answer + 6, code);
        if (write(1, answer, length) != (ssize_t)length) return 74;
    }
}
