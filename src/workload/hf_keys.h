#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"

namespace krigtune::workload {

/// Keys of one config.json of Hugging Face transformers, which families name differently. A value of another type than
/// asked for counts as missing.
class HfKeys {
 public:
  using Names = std::vector<std::string_view>;

  explicit HfKeys(JsonObject& config) : config_(config) {}  ///< which must outlive it

  /// Returns the first of these sizes that is there and 1 or more.
  std::optional<std::int64_t> size(const Names& names) {
    for (const std::string_view name : names) {
      const Json* json = config_.find(std::string(name));
      if (json == nullptr || !json->is_number_integer()) continue;
      if (const auto value = json->get<std::int64_t>(); value >= 1) return value;
    }
    return std::nullopt;
  }
  std::int64_t size_or(const char* name, std::int64_t otherwise) { return size({name}).value_or(otherwise); }

  /// Returns the first of these flags that is there.
  std::optional<bool> flag(const Names& names) {
    for (const std::string_view name : names) {
      const Json* json = config_.find(std::string(name));
      if (json != nullptr && json->is_boolean()) return json->get<bool>();
    }
    return std::nullopt;
  }
  bool is_set(const char* key) { return flag({key}).value_or(false); }

  /// Returns the numbers in a list of them.
  std::vector<std::int64_t> numbers(const char* key) {
    std::vector<std::int64_t> found;
    const Json* list = config_.find(key);
    if (list == nullptr || !list->is_array()) return found;
    for (const Json& item : *list) {
      if (item.is_number_integer()) found.push_back(item.get<std::int64_t>());
    }
    return found;
  }
  /// Returns the words of a list, or none if it has anything else.
  std::vector<std::string> words(const char* key) {
    std::vector<std::string> found;
    const Json* list = config_.find(key);
    if (list == nullptr || !list->is_array()) return found;
    for (const Json& item : *list) {
      if (!item.is_string()) return {};
      found.push_back(item.get<std::string>());
    }
    return found;
  }
  /// Returns a text; empty if there is none.
  std::string text(const char* key) {
    const Json* json = config_.find(key);
    return json != nullptr && json->is_string() ? json->get<std::string>() : "";
  }
  /// Returns the places in a list, from 0, at which an item is that word.
  std::vector<std::int64_t> places_of(const char* key, std::string_view word) {
    std::vector<std::int64_t> found;
    const Json* list = config_.find(key);
    if (list == nullptr || !list->is_array()) return found;
    for (std::size_t i = 0; i < list->size(); ++i) {
      if ((*list)[i].is_string() && (*list)[i].get<std::string>() == word)
        found.push_back(static_cast<std::int64_t>(i));
    }
    return found;
  }
  /// Returns how many items a list has, or how many of them are that word; 0 without a list.
  std::int64_t length_of(const char* key, std::string_view word = "") {
    const Json* list = config_.find(key);
    if (list == nullptr || !list->is_array()) return 0;
    return std::count_if(list->begin(), list->end(), [&](const Json& item) {
      return word.empty() || (item.is_string() && item.get<std::string>() == word);
    });
  }

 private:
  JsonObject& config_;
};

}  // namespace krigtune::workload
