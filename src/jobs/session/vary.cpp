#include "jobs/session/vary.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "space/configuration.h"
#include "space/parameter.h"
#include "space/well_known.h"

namespace krigtune::jobs {
namespace {

constexpr const char* kForm = "write NAME=FLAG:VALUES, as 'micro_batch=--mbs:1,2,4,8'";

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool is_parameter_name(const std::string& text) {
  return !text.empty() && !(text.front() >= '0' && text.front() <= '9') &&
         std::all_of(text.begin(), text.end(), is_name_character);
}

// Returns whether a placeholder of this name already has a meaning.
bool is_taken(const std::string& name) {
  constexpr std::string_view kOfTrials[] = {"port", "dir",   "trial", "config", "result",
                                            "slot", "flags", "true",  "false"};
  const auto& facts = space::known_facts();
  return is_one_of(name, kOfTrials) ||
         std::any_of(facts.begin(), facts.end(), [&](const space::KnownFact& fact) { return name == fact.name; });
}

// "--micro-batch-size" becomes micro_batch_size, which becomes micro_batch.
std::string name_of_flag(std::string flag) {
  if (const std::size_t hash = flag.find('#'); hash != std::string::npos) flag = flag.substr(hash + 1);
  if (const std::size_t dot = flag.rfind('.'); dot != std::string::npos) flag = flag.substr(dot + 1);
  std::string name;
  for (const char c : flag) {
    if (is_name_character(c)) {
      name += c;
    } else if (!name.empty() && c == '-') {
      name += '_';
    }
  }
  name = lower_case(name);
  std::string known(space::well_known_name(name));
  if (!known.empty()) return known;
  return is_parameter_name(name) && !is_taken(name) ? name : "x";
}

[[noreturn]] void refuse(const std::string& text, const std::string& what, const std::string& hint) {
  throw UserError(fmt::format("--vary '{}': {}", text, what), hint);
}

VaryPlace file_key(const std::string& text, const std::string& written, std::size_t hash) {
  VaryPlace place;
  place.is = VaryPlace::Is::kFileKey;
  place.file = written.substr(0, hash);
  place.name = written.substr(hash + 1);
  if (place.file.empty() || place.name.empty() || place.name == "+") {
    refuse(text, fmt::format("'{}' is not a key of a file", written),
           "write FILE#KEY, as conf/train.yaml#optimizer.lr");
  }
  return place;
}

VaryPlace read_place(const std::string& text, const std::string& written) {
  VaryPlace place;
  if (written.empty()) refuse(text, "FLAG is missing", kForm);
  if (written.front() == '$') {
    place.is = VaryPlace::Is::kVariable;
    place.name = written.substr(1);
    if (is_parameter_name(place.name)) return place;
    refuse(text, fmt::format("'{}' is not an environment variable", written), "write $NAME, as $BATCH_SIZE");
  }
  if (const std::size_t hash = written.find('#'); hash != std::string::npos) return file_key(text, written, hash);
  const bool is_joined = written.back() == '=';
  place.name = is_joined ? written.substr(0, written.size() - 1) : written;
  if (written.front() == '-') {
    place.is_joined = is_joined;
    if (place.name.find_first_not_of('-') != std::string::npos && place.name.find('=') == std::string::npos)
      return place;
    refuse(text, fmt::format("'{}' is not a flag", written), "write it as in the command, without its value: --mbs");
  }
  place.is = VaryPlace::Is::kOverride;
  if (is_joined && !place.name.empty()) return place;
  refuse(text, fmt::format("'{}' is neither a flag nor a key", written),
         "write --flag, key= (an override word), $VARIABLE or FILE#key");
}

void check_name(const std::string& text, const std::string& name) {
  if (!is_parameter_name(name)) {
    refuse(text, fmt::format("'{}' is not the name of a parameter", name),
           "use letters, digits and _, not beginning with a digit");
  }
  if (is_taken(name)) {
    refuse(text, fmt::format("'{}' already means something in a session", name),
           "choose another NAME for it; FLAG stays as it is");
  }
}

}  // namespace

std::string VaryPlace::text() const {
  switch (is) {
    case Is::kFlag:
      return name;
    case Is::kOverride:
      return name + "=";
    case Is::kVariable:
      return "$" + name;
    case Is::kFileKey:
      return file + "#" + name;
  }
  return name;
}

Vary read_vary(const std::string& text) {
  const bool begins_with_flag = !text.empty() && (text.front() == '-' || text.front() == '$');
  const std::size_t equals = begins_with_flag ? std::string::npos : text.find('=');
  const std::size_t hash = text.find('#');
  if (equals == std::string::npos || hash < equals) {
    if (text.find(':') == std::string::npos) refuse(text, "is not understood", kForm);
    refuse(text, "a name before the flag is missing",
           fmt::format("write '{}={}'", name_of_flag(text.substr(0, text.find(':'))), text));
  }
  Vary vary{text, text.substr(0, equals), {}, nullptr};
  check_name(text, vary.name);
  const std::string rest = text.substr(equals + 1);
  // A file name may contain a colon, a key may not.
  const std::size_t from = rest.find('#') == std::string::npos ? 0 : rest.find('#');
  const std::size_t colon = rest.find(':', from);
  vary.place = read_place(text, rest.substr(0, colon));
  if (colon != std::string::npos) vary.values = read_values(rest.substr(colon + 1), fmt::format("--vary '{}'", text));
  return vary;
}

// Values:
namespace {

constexpr const char* kValueForms = "write 1,2,4 or a,b,c or 1..8 or 1..64:log2 or 1e-5..1e-2:log";
constexpr double kLargestInteger = 9e15;  // doubles hold every integer below 2^53

struct End {
  double number = 0.0;
  bool is_real = false;  ///< written with a point or an exponent
};

std::optional<End> read_end(const std::string& text) {
  End end;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), end.number);
  if (error != std::errc() || stop != text.data() + text.size() || !std::isfinite(end.number)) return std::nullopt;
  end.is_real = text.find_first_of(".eE") != std::string::npos;
  return end;
}

// Returns the text without the brackets of "[1,2,4]", as people write lists elsewhere.
std::string without_brackets(const std::string& text) {
  const std::string list = trimmed(text);
  const bool is_list = list.size() > 2 && list.front() == '[' && list.back() == ']' &&
                       std::count_if(list.begin(), list.end(), [](char c) { return c == '[' || c == ']'; }) == 2;
  return is_list ? list.substr(1, list.size() - 2) : text;
}

// "1-8" alone is hardly the only value to try.
void refuse_dash(const std::string& text, const std::string& where) {
  const std::size_t dash = text.find('-', 1);
  if (dash == std::string::npos || !read_end(text.substr(0, dash)) || !read_end(text.substr(dash + 1))) return;
  throw UserError(fmt::format("{}: '{}' is a text and not a range", where, text),
                  fmt::format("write {}..{}", text.substr(0, dash), text.substr(dash + 1)));
}

Json list_of(const std::string& written, const std::string& where) {
  const std::string text = without_brackets(written);
  std::vector<std::string> items;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    items.push_back(trimmed(text.substr(begin, comma - begin)));
    if (items.back().empty()) throw UserError(fmt::format("{}: an empty value in '{}'", where, text), kValueForms);
    begin = comma + 1;
  }
  if (items.size() == 1) refuse_dash(items.front(), where);
  const auto value = [](const std::string& item) { return space::value_from_text(item); };
  const auto kind = [&](const std::string& item) {
    return space::is_number(value(item)) ? std::variant_npos : value(item).index();
  };
  const bool is_of_one_kind =
      std::all_of(items.begin(), items.end(), [&](const auto& item) { return kind(item) == kind(items.front()); });
  Json list = Json::array();
  for (const std::string& item : items) list.push_back(is_of_one_kind ? space::to_json(value(item)) : Json(item));
  return list;
}

Json integers(double min, double max, const std::string& scale) {
  Json range = {{"min", json_number(min)}, {"max", json_number(max)}};
  if (scale == "log2") range["scale"] = "log2";
  if (scale != "log") return range;
  constexpr double kPerDoubling = 2.0;
  range["scale"] = "log";
  range["steps"] = std::max<std::int64_t>(2, std::llround(kPerDoubling * std::log2(max / min)) + 1);
  return range;
}

Json reals(double min, double max, const std::string& scale) {
  Json range = {{"type", "real"}, {"min", min}, {"max", max}};
  if (scale == "log") range["scale"] = "log";
  return range;
}

Json range_of(const std::string& text, std::size_t dots, const std::string& where) {
  const std::size_t colon = text.find(':', dots);
  const std::string scale = colon == std::string::npos ? "" : text.substr(colon + 1);
  const std::string last = text.substr(dots + 2, colon == std::string::npos ? colon : colon - dots - 2);
  const std::optional<End> min = read_end(trimmed(text.substr(0, dots)));
  const std::optional<End> max = read_end(trimmed(last));
  const auto fail = [&](const std::string& what, const char* hint) {
    throw UserError(fmt::format("{}: '{}' {}", where, text, what), hint);
  };
  if (!min || !max) fail("is not a range of numbers", kValueForms);
  if (!scale.empty() && scale != "log" && scale != "log2") {
    fail(fmt::format("ends in ':{}', which is not a scale", scale), "write :log or :log2 after a range, or nothing");
  }
  if (!(min->number < max->number)) fail("is empty", "write the smaller end first, and a larger one after ..");
  if (!scale.empty() && min->number <= 0.0) fail("has no logarithm at its lower end", "begin above 0");
  const bool is_real = min->is_real || max->is_real;
  if (is_real && scale == "log2") fail("is of real numbers", "write whole numbers before :log2, or :log");
  if (is_real) return reals(min->number, max->number, scale);
  if (std::max(std::abs(min->number), max->number) > kLargestInteger) fail("is too large", "choose smaller ends");
  return integers(min->number, max->number, scale);
}

// The session's reader checks the values, and its errors name the option instead of file and pointer.
void check_values(const Json& values, const std::string& where) {
  const std::string pointer = "/x";
  try {
    space::read_parameters({{"x", values}}, where, "");
  } catch (const UserError& error) {
    std::string what = error.what();
    if (what.rfind(where + ": " + pointer, 0) == 0) {
      const std::size_t end = what.find(':', where.size() + 2);
      if (end != std::string::npos) what = where + what.substr(end);
    }
    throw UserError(what);
  }
}

}  // namespace

Json read_values(const std::string& text, const std::string& where) {
  if (trimmed(text).empty()) throw UserError(where + ": VALUES are missing", kValueForms);
  const std::size_t dots = text.find("..");
  const bool is_range = dots != std::string::npos && text.find(',') == std::string::npos &&
                        read_end(trimmed(text.substr(0, dots))).has_value();
  Json values = is_range ? range_of(text, dots, where) : list_of(text, where);
  check_values(values, where);
  return values;
}

}  // namespace krigtune::jobs
