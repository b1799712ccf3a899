#pragma once
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace krigtune {

/// JSON whose keys keep the order in which they were written: the order of a session's parameters is that of its
/// columns.
using Json = nlohmann::ordered_json;

// Text from outside is read by the functions below, by core/formats/yaml.h and by core/formats/toml.h. They do not
// overflow the stack, whatever the text is, and neither does a recursion over what they return.

/// How deep arrays and objects may be nested; a session needs five levels.
inline constexpr std::size_t kDeepestNesting = 64;

/// Parses JSON that people write. `//` comments and trailing commas are allowed, duplicate keys are not. `source` names
/// the text in errors. Throws UserError with line and column.
Json parse_json(std::string_view text, const std::string& source);

/// Calls parse_json on the contents of a file.
Json load_json(const std::filesystem::path& path);

/// Parses JSON that programs write: without comments; of duplicate keys the last counts. Throws a UserError that says
/// only what is wrong ("not JSON: ...", "nested more than 64 deep").
Json parse_program_json(std::string_view text);

/// Does the same for text that need not be JSON: instead of throwing it returns a discarded value (is_discarded()),
/// which is neither an object nor anything else.
Json json_or_discarded(std::string_view text);

/// How NaN, Infinity and -Infinity are read, which Python writes and which are not JSON.
enum class OddNumbers { kNull, kText };

/// Calls json_or_discarded on JSON as Python's json.dumps writes it.
Json python_json_or_discarded(std::string_view text, OddNumbers as);

/// Returns a number that prints as an integer if it is one ("500000000", not "500000000.0").
Json json_number(double value);

/// Reads one JSON object that a user wrote. It remembers which keys the caller looked up, so that `finish` can refuse
/// all others. Every error is a UserError with the source, the JSON pointer and the fix. `value` must outlive the
/// reader.
class JsonObject {
 public:
  /// Throws unless `value` is an object. `pointer`: "" at the root, "/space/zero_stage" below.
  JsonObject(const Json& value, std::string source, std::string pointer);

  bool has(const std::string& key) const;  ///< present and not null
  const Json& require(const std::string& key);
  const Json* find(const std::string& key);  ///< nullptr if absent or null

  double number(const std::string& key, double fallback);
  std::int64_t integer(const std::string& key, std::int64_t fallback);
  bool boolean(const std::string& key, bool fallback);
  std::string text(const std::string& key, const std::string& fallback);
  std::optional<double> optional_number(const std::string& key);
  std::optional<std::int64_t> optional_integer(const std::string& key);
  std::vector<std::string> texts(const std::string& key);  ///< empty if absent
  JsonObject object(const std::string& key);               ///< throws if absent

  /// Throws if the object has a key that was never looked up, and names the nearest known key.
  void finish() const;

  /// Throws an error at `key` of this object ("" means the object itself).
  [[noreturn]] void fail(const std::string& key, const std::string& what, const std::string& hint) const;

  const Json& value() const { return value_; }
  const std::string& source() const { return source_; }
  std::string pointer(const std::string& key = "") const;

 private:
  const Json& value_;
  std::string source_;
  std::string pointer_;
  std::vector<std::string> known_;
};

}  // namespace krigtune
