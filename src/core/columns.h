#pragma once
#include <string>
#include <string_view>

namespace krigtune {

/// How many columns of a terminal a text takes: two for a wide character (East Asian, emoji), none for one that
/// combines with the one before, one for each byte that is no UTF-8. Of text without control characters (see
/// `visible`).
int columns_of(std::string_view text);

/// The text without what would move a terminal's cursor or hide a part of it: control characters as "\n" or "\x1b",
/// characters that change the direction of writing or take no room as "\u202e", bytes that are no UTF-8 as "\xff".
std::string visible(std::string_view text);

/// The same for a text of several lines: each is made visible, the ends of lines stay.
std::string visible_lines(std::string_view text);

/// At most so many columns of a line, "..." for the rest. No character is cut in two.
std::string clipped(std::string_view line, int columns);

/// With blanks to so many columns, on the left where it is `right_aligned`. A wider text stays as it is.
std::string padded(std::string_view text, int columns, bool right_aligned);

/// Broken at blanks into lines of at most so many columns, those after the first one indented; a word that is longer
/// than a line is clipped. Without an end of line at the end.
std::string wrapped_lines(std::string_view text, int columns, int indent);

}  // namespace krigtune
