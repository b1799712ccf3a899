#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace krigtune::runner {

/// One value of a YAML, TOML or JSON file, replaced where it stands: all other bytes stay as they were, comments,
/// order, blank lines, the ends of lines.
///
///   with_value(FileFormat::kYaml, "train:\n  batch: 8  # a rank\n", "train.batch", {"4"}, IfMissing::kRefuse)
///     == "train:\n  batch: 4  # a rank\n"
enum class FileFormat { kYaml, kToml, kJson };

/// By the end of its name: .yaml, .yml, .toml, .json. Empty: another one.
std::optional<FileFormat> file_format_of(const std::filesystem::path& file);

struct NewValue {
  std::string text;
  /// It is a text also where it reads as a number, as true or as false: then it is quoted. What is no text is written
  /// as it is, but in quotes where the old value has some; quoted "auto" gives way to a number.
  bool is_text = false;
};

enum class IfMissing { kRefuse, kAdd };

/// `key` names a value by the names of tables and the positions in lists (from 0) that lead to it: "train.batch",
/// "layers.0.size". A name may have dots itself. Where an anchor of YAML holds the value, it changes wherever the
/// anchor's alias stands.
/// Throws UserError, a line that is to begin with file and pointer: a file that does not parse, a key that is not there
/// (with the nearest name), that is there twice, or that holds no single value.
std::string with_value(FileFormat format, const std::string& document, const std::string& key, const NewValue& value,
                       IfMissing if_missing);

}  // namespace krigtune::runner
