#pragma once
#include <array>
#include <cassert>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/json.h"

namespace krigtune::schema {

/// Functions that build JSON Schemas (draft-07). A Block (core/block.h) makes its own schema; these are for all other
/// shapes, and for the values within a block.

Json text(const std::string& meaning = "");
Json number(const std::string& meaning = "");
Json integer(const std::string& meaning = "");
Json boolean(const std::string& meaning = "");
Json word(const std::vector<std::string>& names, const std::string& meaning = "");
Json list(const Json& item, const std::string& meaning = "");
Json map(const Json& value, const std::string& meaning = "");  ///< any key
/// Accepts any one of several shapes.
Json either(const std::vector<Json>& shapes, const std::string& meaning = "");
/// A value of a parameter: a number, a text, true or false.
Json scalar();

Json with_meaning(const std::string& meaning, Json schema);  ///< puts the meaning first
Json with_default(Json schema, const Json& value);
Json not_empty(Json schema);  ///< a list or a text

struct Key {
  std::string name;
  Json schema;
  bool required = false;
};
/// An object with these keys and no others. Null counts as a key that is left out, as it does for the readers.
Json object(const std::string& meaning, const std::vector<Key>& keys);

}  // namespace krigtune::schema

namespace krigtune {

/// The names of an enum's values in a session file.
template <class Enum, std::size_t N>
using EnumWords = std::array<std::pair<std::string_view, Enum>, N>;

template <class Enum, std::size_t N>
std::string word_of(Enum value, const EnumWords<Enum, N>& words) {
  for (const auto& [word, other] : words) {
    if (other == value) return std::string(word);
  }
  assert(false);
  return "";
}

/// A Codec is one value of a JSON file: how to read it, how to write it, and its JSON Schema. core/block.h combines
/// codecs into objects.
///
///   number(from_to(0, 2))      integer<int>(at_least(1))      one_of(kLauncherWords)

/// The numbers that a key accepts.
struct NumberLimits {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_included = true;
  bool high_included = true;

  bool hold(double value) const;
  std::string text() const;  ///< "from 0 to 2", "above 0", "of 0 or more"; "": any number
  nlohmann::ordered_json applied_to(nlohmann::ordered_json schema) const;
};
NumberLimits at_least(double low);
NumberLimits above(double low);
NumberLimits from_to(double low, double high);
NumberLimits from_to_below(double low, double high);  ///< [low, high)
NumberLimits above_up_to(double low, double high);    ///< (low, high]

/// One kind of value. `read` is called only if the key is present and not null. It throws UserError with the key's
/// pointer.
template <class Member>
struct Codec {
  Json schema;
  std::function<Member(JsonObject& object, const std::string& key)> read;
  std::function<Json(const Member& value)> write;
};

/// `example` is added to the fix in the error: "0.01 for 1 %".
Codec<double> number(const NumberLimits& limits = {}, const std::string& example = "");
/// For an optional member: the error says that null is allowed too.
Codec<double> number_or_null(const NumberLimits& limits);
Codec<bool> boolean();
Codec<std::string> text();
Codec<std::string> text_or_null();  ///< "" means not given, and is written as null
Codec<std::vector<std::string>> texts();

namespace detail {
/// Returns the integer at `key`. Throws UserError if it is outside the limits.
std::int64_t limited_integer(JsonObject& object, const std::string& key, const NumberLimits& limits,
                             const std::string& or_else);
[[noreturn]] void refuse_word(const JsonObject& object, const std::string& key, const std::string& word,
                              const std::vector<std::string>& known);
}  // namespace detail

template <class Integer = std::int64_t>
Codec<Integer> integer(const NumberLimits& limits = {}, const std::string& or_else = "") {
  return {limits.applied_to(schema::integer()),
          [limits, or_else](JsonObject& object, const std::string& key) {
            return static_cast<Integer>(detail::limited_integer(object, key, limits, or_else));
          },
          [](const Integer& value) { return Json(value); }};
}
/// For an optional member: the error says that null is allowed too.
template <class Integer = std::int64_t>
Codec<Integer> integer_or_null(const NumberLimits& limits) {
  return integer<Integer>(limits, " or null");
}

/// One of the words of `words`, for the enumerator that belongs to it.
template <class Enum, std::size_t N>
Codec<Enum> one_of(const EnumWords<Enum, N>& words) {
  std::vector<std::string> known;
  for (const auto& entry : words) known.emplace_back(entry.first);
  return {schema::word(known),
          [words, known](JsonObject& object, const std::string& key) {
            const std::string text = object.text(key, "");
            for (const auto& [word, value] : words) {
              if (word == text) return value;
            }
            detail::refuse_word(object, key, text, known);
          },
          [words](const Enum& value) { return Json(word_of(value, words)); }};
}

}  // namespace krigtune
