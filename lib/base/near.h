#ifndef SB_BASE_NEAR_H
#define SB_BASE_NEAR_H
/* How near two words are, for "did you mean". */

/* Levenshtein distance; @max + 1 when it is more than @max, or a word has more than 64 bytes. */
unsigned int sb_near(const char *a, const char *b, unsigned int max);
/* The distance at which a suggestion for @word still helps: of a short word, one letter. */
unsigned int sb_near_max(const char *word);

#endif
