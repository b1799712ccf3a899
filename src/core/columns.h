#pragma once
#include <string>
#include <string_view>

namespace krigtune {

/// Returns how many columns of a terminal a text takes: two for a wide character (East Asian, emoji), none for one that
/// combines with the character before it, one for each byte that is not valid UTF-8. The text must not contain control
/// characters (see `visible`).
int columns_of(std::string_view text);

/// Returns the text with everything escaped that would move a terminal's cursor or hide a part of the text: control
/// characters as "\n" or "\x1b", invisible characters and those that change the writing direction as "\u202e", bytes
/// that are not valid UTF-8 as "\xff".
std::string visible(std::string_view text);

/// Applies `visible` to each line of a text, and keeps the line breaks.
std::string visible_lines(std::string_view text);

/// Cuts a line to at most so many columns and ends a cut line with "...". No character is cut in two.
std::string clipped(std::string_view line, int columns);

/// Fills a text with blanks up to so many columns, on the left if `right_aligned`. A wider text is returned unchanged.
std::string padded(std::string_view text, int columns, bool right_aligned);

/// Breaks a text at blanks into lines of at most so many columns, and indents all lines but the first. A word longer
/// than a line is clipped. The result does not end with a line break.
std::string wrapped_lines(std::string_view text, int columns, int indent);

}  // namespace krigtune
