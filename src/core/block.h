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
/// The default of a key is what its member has in a T that nobody has touched.
namespace krigtune {

/// The keys of one object. Built by who reads or writes; cheap enough to be made anew each time.
template <class T>
class Block {
 public:
  using Check = std::function<void(JsonObject& object, T& value)>;
  using Reader = std::function<void(JsonObject& object, T& value)>;
  using Writer = std::function<Json(const T& value)>;

  explicit Block(std::string meaning) : meaning_(std::move(meaning)) {}

  /// `member`: a pointer to it, or a function that returns a reference to it. One that is optional is empty where the
  /// key is left out or null.
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

  /// An object within this one that fills a member, which is named as `key` names it.
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
  /// An object within this one, whose keys set members of the same T.
  Block& group(const char* name, const Block& keys) { return block(name, std::identity(), keys); }

  /// A key that no codec reads. Without `write` it is not written.
  Block& custom(const char* name, const Json& schema, const char* meaning, Reader read, Writer write = {}) {
    fields_.push_back({name, schema::with_meaning(meaning, schema), std::move(read), std::move(write)});
    return *this;
  }

  /// A key that whoever calls `read` looks at.
  Block& noted(const char* name, const Json& schema, const char* meaning) {
    return custom(name, schema, meaning, [name](JsonObject& object, T&) { object.find(name); });
  }

  // Of the key that was declared last.

  Block& required() {
    fields_.back().required = true;
    return *this;
  }
  /// What holds without it stands in its meaning, or depends on the rest.
  Block& no_default() {
    fields_.back().has_default = false;
    return *this;
  }
  /// It is written only where it is not the default.
  Block& written_where_changed() {
    fields_.back().always_written = false;
    return *this;
  }

  /// What several keys must fulfil together, or what follows from them: called in this order once all are read.
  Block& check(Check check) {
    checks_.push_back(std::move(check));
    return *this;
  }

  /// Fills `value`, which holds the defaults. Throws UserError with the JSON pointer: unknown keys, a missing key, a
  /// wrong kind, numbers beyond their limits.
  void read(JsonObject& object, T& value) const {
    for (const Field& field : fields_) object.find(field.name);
    object.finish();  // a misspelt key is better news than the missing one that it was meant for
    for (const Field& field : fields_) {
      if (field.required) object.require(field.name);
      field.read(object, value);
    }
    for (const Check& check : checks_) check(object, value);
  }
  /// The same of `json`, where there is any.
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
