#pragma once
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/codec.h"

/// A block of a JSON file, declared once: each key with the member that it sets, its kind, its limits and its meaning.
/// Reader, writer, JSON Schema and documentation are all made from this one table.
///
///   Block<SimulateSpec> simulate_block() {
///     Block<SimulateSpec> block("Trials on the virtual clock");
///     block.key("noise", &SimulateSpec::noise, number(from_to(0, 2)), "standard deviation of log(step time)");
///     block.key("seed", &SimulateSpec::seed, integer(at_least(0)), "of all that is hidden and of the noise");
///     return block;
///   }
///
/// The default of a key is the value of its member in a default-constructed T.
namespace krigtune {

/// The keys of one object. A block is cheap to build: functions that read or write build it anew each time.
template <class T>
class Block {
 public:
  using Check = std::function<void(JsonObject& object, T& value)>;
  using Reader = std::function<void(JsonObject& object, T& value)>;
  using Writer = std::function<Json(const T& value)>;

  explicit Block(std::string meaning) : meaning_(std::move(meaning)) {}

  /// Declares a key that sets one member. `member` is a pointer to the member, or a function that returns a reference
  /// to it. An optional member is empty if the key is left out or null.
  template <class Place, class Member>
  Block& key(const char* name, Place member, const Codec<Member>& codec, const char* meaning) {
    return custom(
        name, codec.schema, meaning,
        [name, member, read = codec.read](JsonObject& object, T& value) {
          if (object.find(name) != nullptr) std::invoke(member, value) = read(object, name);
        },
        [member, write = codec.write](const T& value) {
          const auto& said = std::invoke(member, value);
          if constexpr (std::is_same_v<std::remove_cvref_t<decltype(said)>, std::optional<Member>>) {
            return said ? write(*said) : Json(nullptr);
          } else {
            return write(said);
          }
        });
  }

  /// Declares an object within this one. It fills one member, given as for `key`.
  template <class Place, class Member>
  Block& block(const char* name, Place member, const Block<Member>& keys) {
    return custom(
               name, keys.schema(), keys.meaning().c_str(),
               [name, member, keys](JsonObject& object, T& value) {
                 if (object.find(name) == nullptr) return;
                 JsonObject within = object.object(name);
                 keys.read(within, std::invoke(member, value));
               },
               [member, keys](const T& value) { return keys.written(std::invoke(member, value)); })
        .no_default();
  }
  /// Declares an object within this one whose keys set members of the same T.
  Block& group(const char* name, const Block& keys) { return block(name, std::identity(), keys); }

  /// Declares a key with its own reader. Without `write` the key is not written.
  Block& custom(const char* name, const Json& schema, const char* meaning, Reader read, Writer write = {}) {
    fields_.push_back({name, schema::with_meaning(meaning, schema), std::move(read), std::move(write)});
    return *this;
  }

  /// Declares a key that `read` only permits; the caller of `read` interprets it.
  Block& noted(const char* name, const Json& schema, const char* meaning) {
    return custom(name, schema, meaning, [name](JsonObject& object, T&) { object.find(name); });
  }

  // The next three change the key that was declared last.

  Block& required() {
    fields_.back().required = true;
    return *this;
  }
  /// The key has no fixed default: its meaning says what happens without it.
  Block& no_default() {
    fields_.back().has_default = false;
    return *this;
  }
  /// The key is written only if its value differs from the default.
  Block& written_where_changed() {
    fields_.back().always_written = false;
    return *this;
  }

  /// Adds a check of several keys together, or a consequence of them. The checks run in this order, after all keys are
  /// read.
  Block& check(Check check) {
    checks_.push_back(std::move(check));
    return *this;
  }

  /// Reads the keys into `value`, which contains the defaults. Throws UserError with the JSON pointer if a key is
  /// unknown, missing or of the wrong kind, or if a number is out of range.
  void read(JsonObject& object, T& value) const {
    for (const Field& field : fields_) object.find(field.name);
    object.finish();  // report a misspelt key before the missing one that it was meant for
    for (const Field& field : fields_) {
      if (field.required) object.require(field.name);
      field.read(object, value);
    }
    for (const Check& check : checks_) check(object, value);
  }
  /// Reads `json` into a new T. If `json` is null, returns the defaults.
  T value_of(const Json* json, const std::string& source, const std::string& pointer) const {
    T value{};
    if (json == nullptr) return value;
    JsonObject object(*json, source, pointer);
    read(object, value);
    return value;
  }

  Json written(const T& value) const {
    Json json = Json::object();
    write(value, json);
    return json;
  }
  void write(const T& value, Json& json) const {
    for (const Field& field : fields_) {
      if (!field.write) continue;
      Json written = field.write(value);
      if (field.always_written || written != field.write(T{})) json[field.name] = std::move(written);
    }
  }

  Json schema() const {
    std::vector<schema::Key> keys;
    for (const Field& field : fields_) {
      const bool has_default = field.write && field.has_default && !field.required;
      const Json otherwise = has_default ? field.write(T{}) : Json(nullptr);
      const bool says_nothing = otherwise.empty() || (otherwise.is_string() && otherwise.get<std::string>().empty());
      keys.push_back(
          {field.name, says_nothing ? field.schema : schema::with_default(field.schema, otherwise), field.required});
    }
    return schema::object(meaning_, keys);
  }

  const std::string& meaning() const { return meaning_; }

 private:
  struct Field {
    std::string name;
    Json schema;
    Reader read;
    Writer write;
    bool required = false;
    bool has_default = true;
    bool always_written = true;
  };

  std::string meaning_;
  std::vector<Field> fields_;
  std::vector<Check> checks_;
};

}  // namespace krigtune
