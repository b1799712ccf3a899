#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runner/in_place_edit.h"

namespace krigtune::runner {

inline constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

/// A document as its parser reads it, with the byte position of each value: the common representation of the three
/// formats of in_place_edit.h.
struct TextNode {
  enum class Is { kValue, kTable, kList } is = Is::kValue;
  std::string name = {};              ///< name in its table, or position in its list
  std::size_t name_begin = kNowhere;  ///< position of its name
  std::size_t begin = kNowhere;       ///< position of the value including quotes; kNowhere: it cannot be replaced
  std::size_t end = kNowhere;         ///< position after the value
  std::string kind = {};              ///< type in the format's terms: text differs from numbers
  std::string text = {};              ///< contents of a value, without quotes
  bool is_inline = false;             ///< a table or list in brackets
  bool is_alias = false;              ///< YAML: "*name" in the document
  std::size_t definition = kNowhere;  ///< YAML: for aliases, that of their anchor
  std::vector<TextNode> children = {};

  const TextNode* child(std::string_view child_name) const;
};

/// The operations of a format.
struct TextFormat {
  /// Throws UserError if the document cannot be parsed.
  TextNode (*read)(const std::string& document);
  /// Returns the text of the value as a replacement of `old`; nullptr: at a new place.
  std::string (*written)(const std::string& document, const NewValue& value, const TextNode* old);
  /// Returns the document with a value added inside `table` (at `path` of the document) under the names `missing`, in
  /// all ways that may be possible, the best one first.
  std::vector<std::string> (*added)(const std::string& document, const TextNode& table,
                                    const std::vector<std::string>& path, const std::vector<std::string>& missing,
                                    const std::string& written);
};

TextFormat yaml_format();
TextFormat toml_format();
TextFormat json_format();

/// Returns "\r\n" if the document's lines end with it, otherwise "\n".
std::string end_of_line_of(const std::string& document);
/// Returns the document with `text` instead of [begin, end).
std::string with_text_at(const std::string& document, std::size_t begin, std::size_t end, const std::string& text);
/// Return whether the text looks like a number, or like true or false.
bool reads_as_number(std::string_view text);
bool reads_as_truth(std::string_view text);
/// Returns whether the value is null, which has no quotes: the key is as if it were not there.
bool is_null(const NewValue& value);
/// Returns whether the new value keeps the quotes of the old one.
bool stays_quoted(const NewValue& value, const TextNode& old);

}  // namespace krigtune::runner
