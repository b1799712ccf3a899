// Flattens YAML, TOML and JSON to scalars by dotted key, and reads assignments of Python.
#include "jobs/recipe/config_values.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include "core/files.h"
#include "core/formats/toml.h"
#include "core/formats/yaml.h"
#include "core/json.h"
#include "core/text.h"

namespace krigtune::jobs {
namespace {

class Flattening {
 public:
  explicit Flattening(const std::string& source) : source_(source) {}

  void add(const std::string& key, const YAML::Node& node) {
    if (node.IsMap()) {
      for (const auto& entry : node) add(below(key, entry.first.as<std::string>("")), entry.second);
    } else if (node.IsSequence()) {
      for (std::size_t i = 0; i < node.size(); ++i) add(below(key, std::to_string(i)), node[i]);
    } else if (node.IsScalar()) {
      const bool is_quoted = node.Tag() == "!";
      values_[key] = is_quoted ? space::Value(node.Scalar()) : space::value_from_text(node.Scalar());
    }
  }

  void add(const std::string& key, const Json& json) {
    if (json.is_object()) {
      for (const auto& [name, value] : json.items()) add(below(key, name), value);
    } else if (json.is_array()) {
      for (std::size_t i = 0; i < json.size(); ++i) add(below(key, std::to_string(i)), json[i]);
    } else if (!json.is_null()) {
      values_[key] = space::value_from_json(json, source_ + ": " + key);
    }
  }

  void add(const std::string& key, const toml::node& node) {
    if (const auto* table = node.as_table()) {
      for (const auto& [name, value] : *table) add(below(key, std::string(name.str())), value);
    } else if (const auto* array = node.as_array()) {
      for (std::size_t i = 0; i < array->size(); ++i) add(below(key, std::to_string(i)), (*array)[i]);
    } else if (const auto text = node.value_exact<std::string>()) {
      values_[key] = *text;
    } else if (const auto flag = node.value_exact<bool>()) {
      values_[key] = *flag;
    } else if (const auto whole = node.value_exact<std::int64_t>()) {
      values_[key] = *whole;
    } else if (const auto number = node.value<double>()) {
      values_[key] = space::number_value(*number);
    }
  }

  ConfigValues take() { return std::move(values_); }

 private:
  static std::string below(const std::string& key, const std::string& name) {
    return key.empty() ? name : key + "." + name;
  }

  const std::string& source_;
  ConfigValues values_;
};

// Returns the code of a line of Python without its comment. A '#' in quotes is none.
std::string without_comment(const std::string& line) {
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (quote == 0 && line[i] == '#') return line.substr(0, i);
    if (quote == 0 && (line[i] == '\'' || line[i] == '"'))
      quote = line[i];
    else if (line[i] == quote)
      quote = 0;
  }
  return line;
}

// Returns the value of a literal or of a product of integers, as "5 * 8"; other expressions stay texts.
space::Value python_value(const std::string& text) {
  const bool is_quoted =
      text.size() > 1 && (text.front() == '\'' || text.front() == '"') && text.back() == text.front();
  if (is_quoted) return text.substr(1, text.size() - 2);
  if (text == "True" || text == "False") return text == "True";
  double product = 1.0;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('*', begin), text.size());
    const space::Value factor = space::value_from_text(trimmed(text.substr(begin, end - begin)));
    const auto* whole = std::get_if<std::int64_t>(&factor);
    if (whole == nullptr) return space::value_from_text(text);
    product *= static_cast<double>(*whole);
    begin = end + 1;
  }
  return space::number_value(product);
}

ConfigValues assignments_of(std::string_view text) {
  ConfigValues values;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    const std::string code = without_comment(line);
    const std::size_t equals = code.find('=');
    if (equals == std::string::npos) continue;
    std::string name = code.substr(0, equals);  // indented lines belong to something else
    while (!name.empty() && (name.back() == ' ' || name.back() == '\t')) name.pop_back();
    const bool is_name = !name.empty() && std::all_of(name.begin(), name.end(),
                                                      [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
    if (is_name && code.compare(equals, 2, "==") != 0) values[name] = python_value(trimmed(code.substr(equals + 1)));
  }
  return values;
}

}  // namespace

ConfigValues config_values_of(std::string_view text, std::string_view suffix, const std::string& source) {
  Flattening flattening(source);
  if (suffix == ".json") {
    flattening.add("", parse_json(text, source));
    return flattening.take();
  }
  if (suffix == ".toml") {
    flattening.add("", static_cast<const toml::node&>(parse_toml(text, source)));
    return flattening.take();
  }
  if (suffix == ".py") return assignments_of(text);
  const std::vector<YAML::Node> documents = parse_yaml(text, source);
  if (!documents.empty()) flattening.add("", documents.front());
  return flattening.take();
}

ConfigValues read_config_values(const std::filesystem::path& file) {
  return config_values_of(read_text(file), lower_case(file.extension().string()), file.string());
}

}  // namespace krigtune::jobs
