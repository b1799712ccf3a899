#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace krigtune::runner {

/// Replaces one value of a YAML, TOML or JSON file in place. All other bytes do not change: comments, order, blank
/// lines, line ends.
///
///   with_value(FileFormat::kYaml, "train:\n  batch: 8  # a rank\n", "train.batch", {"4"}, IfMissing::kRefuse)
///     == "train:\n  batch: 4  # a rank\n"
enum class FileFormat { kYaml, kToml, kJson };

/// Returns the format by the file's suffix: .yaml, .yml, .toml, .json. Empty for others.
std::optional<FileFormat> file_format_of(const std::filesystem::path& file);

struct NewValue {
  std::string text;
  /// The value is text even if it looks like a number, true or false; such text is quoted. Other values are written as
  /// they are, but in quotes if the old value has quotes; a number replaces quoted "auto" together with its quotes, and
  /// null in YAML and JSON any quoted text.
  bool is_text = false;
};

enum class IfMissing { kRefuse, kAdd };

/// `key` names a value by the table names and list positions (from 0) that lead to it: "train.batch", "layers.0.size".
/// Names may contain dots. If the value belongs to a YAML anchor, it changes for all aliases of the anchor. Throws
/// UserError, a line to be prefixed with file and pointer, for a file that cannot be parsed, and for a key that is
/// missing (with the nearest name), duplicate, or not a single value.
std::string with_value(FileFormat format, const std::string& document, const std::string& key, const NewValue& value,
                       IfMissing if_missing);

}  // namespace krigtune::runner
