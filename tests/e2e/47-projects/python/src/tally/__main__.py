import sys

from tally import words_of

print(words_of(sys.argv[1:]))
