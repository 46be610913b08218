/* Prints the sort keys that ICU's root collation gives, as CouchDB asks for it.
 * First comes a line with the version of ICU. Then, for each string on standard
 * input (4 bytes of length in the machine's order, UTF-8), its key in the same
 * form, without the zero at the end. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unicode/ucol.h>
#include <unicode/ustring.h>
#include <unicode/uvernum.h>

enum { longest = 1 << 16 };

static void check(UErrorCode code) {
	if (U_FAILURE(code)) {
		fprintf(stderr, "%s\n", u_errorName(code));
		exit(1);
	}
}

int main(void) {
	UErrorCode code = U_ZERO_ERROR;
	UCollator *root = ucol_open("", &code);
	check(code);
	printf("%s\n", U_ICU_VERSION);
	static char text[longest];
	static UChar wide[longest];
	static uint8_t key[longest];
	uint32_t n;
	while (fread(&n, sizeof n, 1, stdin) == 1) {
		if (n > longest || fread(text, 1, n, stdin) != n)
			return 1;
		int32_t units;
		u_strFromUTF8(wide, longest, &units, text, (int32_t)n, &code);
		check(code);
		uint32_t size = (uint32_t)ucol_getSortKey(root, wide, units, key, longest);
		if (size == 0 || size > longest)
			return 1;
		size--;
		fwrite(&size, sizeof size, 1, stdout);
		fwrite(key, 1, size, stdout);
	}
	ucol_close(root);
	return 0;
}
