// Flattens YAML, TOML and JSON to scalars by dotted key.
#include "jobs/recipe/config_values.h"

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
  const std::vector<YAML::Node> documents = parse_yaml(text, source);
  if (!documents.empty()) flattening.add("", documents.front());
  return flattening.take();
}

ConfigValues read_config_values(const std::filesystem::path& file) {
  return config_values_of(read_text(file), lower_case(file.extension().string()), file.string());
}

}  // namespace krigtune::jobs
