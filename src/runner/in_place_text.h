#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runner/in_place_edit.h"

namespace krigtune::runner {

inline constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

/// A document as its library reads it, with the bytes where each value stands: what the three formats of
/// in_place_edit.h have in common.
struct TextNode {
  enum class Is { kValue, kTable, kList } is = Is::kValue;
  std::string name = {};              ///< in its table, or its position in its list
  std::size_t name_begin = kNowhere;  ///< where its name stands
  std::size_t begin = kNowhere;       ///< the value, with its quotes; kNowhere: it cannot be replaced
  std::size_t end = kNowhere;         ///< behind it
  std::string kind = {};              ///< as the format calls it: a text is another than a number
  std::string text = {};              ///< of a value: what it says, without quotes
  bool is_inline = false;             ///< a table or list in brackets
  bool is_alias = false;              ///< YAML: "*name" stands there
  std::size_t definition = kNowhere;  ///< YAML: aliases have that of their anchor
  std::vector<TextNode> children = {};

  const TextNode* child(std::string_view child_name) const;
};

/// What each format can do.
struct TextFormat {
  /// Throws UserError where it does not parse.
  TextNode (*read)(const std::string& document);
  /// The value as it is written in the place of `old`; nullptr: in a new place.
  std::string (*written)(const std::string& document, const NewValue& value, const TextNode* old);
  /// The document with a value added within `table` (at `path` of the document) by the names `missing`, in the ways in
  /// which it may be possible, the best one first.
  std::vector<std::string> (*added)(const std::string& document, const TextNode& table,
                                    const std::vector<std::string>& path, const std::vector<std::string>& missing,
                                    const std::string& written);
};

TextFormat yaml_format();
TextFormat toml_format();
TextFormat json_format();

/// "\r\n" where the document ends its lines so, else "\n".
std::string end_of_line_of(const std::string& document);
/// The document with `text` in the place of [begin, end).
std::string with_text_at(const std::string& document, std::size_t begin, std::size_t end, const std::string& text);
/// Whether it reads as a number, or as true or false.
bool reads_as_number(std::string_view text);
bool reads_as_truth(std::string_view text);
/// Whether what was quoted stays quoted with the new value.
bool stays_quoted(const NewValue& value, const TextNode& old);

}  // namespace krigtune::runner
