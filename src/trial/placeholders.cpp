// Decides which braces are placeholders, and replaces these. Braces of JSON, awk and shells enclose something other
// than an expression over known names, so their contents distinguish them.
#include "trial/placeholders.h"

#include <arpa/inet.h>
#include <fmt/args.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/error.h"
#include "core/text.h"

namespace krigtune::trial {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t'; }
bool begins_placeholder_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool goes_on_placeholder_name(char c) { return begins_placeholder_name(c) || (c >= '0' && c <= '9') || c == '.'; }

std::vector<std::string> names_of(const KnownNames& known) {
  std::vector<std::string> names;
  for (const KnownName& name : known) names.push_back(name.name);
  return names;
}

// Suggests the nearest names, or all if there are few.
std::string mend_of(std::string_view name, const KnownNames& known) {
  constexpr std::size_t kFew = 12;
  const std::vector<std::string> names = names_of(known);
  if (names.size() > kFew && nearest_name(name, names).empty()) return "";
  return suggestion(name, names);
}

const KnownName* find_name(const KnownNames& known, std::string_view name) {
  const auto found = std::find_if(known.begin(), known.end(), [&](const KnownName& k) { return k.name == name; });
  return found == known.end() ? nullptr : &*found;
}

// Returns the end of a quoted text that begins at `at`, or at + 1 if it is not closed.
std::size_t end_of_quotes(std::string_view text, std::size_t at) {
  const std::size_t close = text.find(text[at], at + 1);
  return close == std::string_view::npos ? at + 1 : close + 1;
}

// The text between braces, cut at the first ':' outside quotes.
struct Content {
  std::string_view expression;
  std::string_view format;
  bool has_format = false;
};

Content content_of(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '\'' || text[at] == '"') {
      at = end_of_quotes(text, at);
    } else if (text[at] == ':') {
      return {text.substr(0, at), text.substr(at + 1), true};
    } else {
      ++at;
    }
  }
  return {text, {}, false};
}

// Returns whether the text contains a known name outside quotes.
bool has_known_name(std::string_view text, const KnownNames& known) {
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '\'' || text[at] == '"') {
      at = end_of_quotes(text, at);
    } else if (begins_placeholder_name(text[at])) {
      std::size_t end = at;
      while (end < text.size() && goes_on_placeholder_name(text[end])) ++end;
      if (find_name(known, text.substr(at, end - at)) != nullptr) return true;
      at = end;
    } else {
      ++at;
    }
  }
  return false;
}

bool begins_expression(char c) {
  return goes_on_placeholder_name(c) || std::string_view("(-!'\"").find(c) != std::string_view::npos;
}

// A YAML mapping in one line, {layers: 12}, has a blank after its colon.
bool may_be_placeholder(std::string_view inside) {
  if (inside.empty() || !begins_expression(inside.front()) || is_blank(inside.back())) return false;
  const Content content = content_of(inside);
  return !content.expression.empty() && !(content.has_format && (content.format.empty() || content.format[0] == ' '));
}

bool is_plain_name(std::string_view text) {
  return begins_placeholder_name(text.front()) && std::all_of(text.begin(), text.end(), goes_on_placeholder_name);
}

// Returns "line 3: " for a file; a word of a command is short enough without it.
std::string line_of(std::string_view text, std::size_t at) {
  if (text.find('\n') == std::string_view::npos) return "";
  return fmt::format("line {}: ", 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

template <class Number>
std::string formatted_as(const std::string& format, const Number& number) {
  return fmt::format(fmt::runtime("{:" + format + "}"), number);
}

bool is_integer_format(const std::string& format) {
  return !format.empty() && std::string_view("dxXobBc").find(format.back()) != std::string_view::npos;
}
bool is_real_format(const std::string& format) {
  return !format.empty() && std::string_view("eEfFgG").find(format.back()) != std::string_view::npos;
}

// Throws fmt::format_error. Returns nothing if the format needs an integer and the value is not one.
std::optional<std::string> formatted_value(const std::string& format, const space::Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return formatted_as(format, *text);
  if (const auto* truth = std::get_if<bool>(&value)) return formatted_as(format, *truth);
  if (is_real_format(format)) return formatted_as(format, space::as_number(value));
  const std::optional<std::int64_t> whole = space::integer_of(value);
  if (whole) return formatted_as(format, *whole);
  if (is_integer_format(format)) return std::nullopt;
  return formatted_as(format, space::as_number(value));
}

const char* kind_words(space::Kind kind) {
  switch (kind) {
    case space::Kind::kText:
      return "a text";
    case space::Kind::kCondition:
      return "true or false";
    default:
      return "a number";
  }
}

space::Value example_of(space::Kind kind) {
  if (kind == space::Kind::kText) return std::string("text");
  if (kind == space::Kind::kCondition) return true;
  return std::int64_t{1};
}

// Braces of fmt within a format would request arguments, and enormous widths would fill the memory.
bool is_harmless_format(std::string_view format) {
  constexpr std::size_t kLongest = 12;
  int digits = 0;
  for (const char c : format) {
    if (c == '{' || c == '}') return false;
    digits = c >= '0' && c <= '9' ? digits + 1 : 0;
    if (digits > 3) return false;
  }
  return format.size() <= kLongest;
}

}  // namespace

/// Splits a text into literal parts and placeholders.
class PlaceholderText::Parser {
 public:
  Parser(const std::string& text, const KnownNames& known, PlaceholderText& to) : text_(text), known_(known), to_(to) {}

  void run() {
    while (at_ < text_.size()) {
      if (text_[at_] == '{') {
        open();
      } else if (text_[at_] == '}') {
        close();
      } else {
        add(text_[at_++]);
      }
    }
    if (!plain_.empty()) to_.parts_.emplace_back(std::move(plain_));
  }

 private:
  bool is_double() const { return at_ + 1 < text_.size() && text_[at_ + 1] == text_[at_]; }
  void add(char c) { plain_ += c; }

  void open() {
    if (is_double()) {
      opened_.push_back(true);
      add('{');
      at_ += 2;
    } else if (!placeholder()) {
      opened_.push_back(false);
      add(text_[at_++]);
    }
  }

  // "}}" closes "{{" or means a single literal brace; if a single brace is open, the two braces are literal.
  void close() {
    const bool closes_single = !opened_.empty() && !opened_.back();
    const std::size_t length = is_double() && !closes_single ? 2 : 1;
    if (!opened_.empty()) opened_.pop_back();
    add('}');
    at_ += length;
  }

  bool placeholder() {
    const std::size_t end = text_.find_first_of("{}\n", at_ + 1);
    if (end == std::string::npos || text_[end] != '}') return false;
    const std::string inside = text_.substr(at_ + 1, end - at_ - 1);
    if (!may_be_placeholder(inside)) return false;
    std::optional<Placeholder> found = parsed(inside);
    if (!found) return false;
    if (!plain_.empty()) to_.parts_.emplace_back(std::move(plain_));
    plain_.clear();
    to_.parts_.emplace_back(std::move(*found));
    at_ = end + 1;
    return true;
  }

  std::optional<Placeholder> parsed(const std::string& inside) const {
    const Content content = content_of(inside);
    const std::string text = "{" + inside + "}";
    std::optional<space::Expression> expression;
    try {
      expression = space::Expression::parse_value(std::string(content.expression));
    } catch (const UserError& error) {
      if (!has_known_name(content.expression, known_)) return std::nullopt;
      throw UserError(where() + fmt::format("'{}' is not an expression: {}", text, error.what()),
                      "write '{{' for a brace of its own");
    }
    if (expression->names().empty()) return std::nullopt;
    if (is_plain_name(content.expression)) refuse_unknown(std::string(content.expression));
    Placeholder placeholder{text, *expression, std::string(content.format), space::Kind::kAny};
    placeholder.kind = kind_of(placeholder);
    if (content.has_format) check_format(placeholder);
    return placeholder;
  }

  void refuse_unknown(const std::string& name) const {
    if (find_name(known_, name) != nullptr) return;
    const std::string fix = mend_of(name, known_);
    const std::string separator = fix.empty() ? "a" : fix.back() == '?' ? " A" : ". A";
    throw UserError(where() + fmt::format("'{{{}}}' is not a placeholder", name),
                    fmt::format("{}{} brace of its own is written '{{{{'", fix, separator));
  }

  space::Kind kind_of(const Placeholder& placeholder) const {
    try {
      return space::kind_of(placeholder.expression.root(), [&](const space::Expression::Node& name) {
        if (const KnownName* known = find_name(known_, name.text)) return known->kind;
        space::fail_at(name.at, fmt::format("unknown name '{}'", name.text), mend_of(name.text, known_));
      });
    } catch (const UserError& error) {
      throw UserError(where() + fmt::format("'{}': {}", placeholder.text, error.what()), "");
    }
  }

  void check_format(const Placeholder& placeholder) const {
    const std::string& format = placeholder.format;
    try {
      if (is_harmless_format(format)) {
        formatted_value(format, example_of(placeholder.kind));
        return;
      }
    } catch (const fmt::format_error&) {
      // The error is thrown below.
    }
    const bool is_text = placeholder.kind == space::Kind::kText;
    throw UserError(where() + fmt::format("'{}': '{}' is not a format of {}", placeholder.text, format,
                                          kind_words(placeholder.kind)),
                    is_text ? "leave it out" : "write .0f, .3g, e or d, as in Python");
  }

  std::string where() const { return line_of(text_, at_); }

  const std::string& text_;
  const KnownNames& known_;
  PlaceholderText& to_;
  std::size_t at_ = 0;
  std::string plain_;
  std::vector<bool> opened_;  ///< braces that are not closed yet; true: "{{"
};

PlaceholderText::PlaceholderText(const std::string& text, const KnownNames& known) : text_(text) {
  Parser(text_, known, *this).run();
}

std::vector<std::string> PlaceholderText::names() const {
  std::vector<std::string> names;
  for (const auto& part : parts_) {
    const auto* placeholder = std::get_if<Placeholder>(&part);
    if (placeholder == nullptr) continue;
    for (const std::string& name : placeholder->expression.names()) {
      if (!is_one_of(name, names)) names.push_back(name);
    }
  }
  return names;
}

bool PlaceholderText::is_plain() const {
  return std::all_of(parts_.begin(), parts_.end(),
                     [](const auto& part) { return std::holds_alternative<std::string>(part); });
}

space::Kind PlaceholderText::kind() const {
  const auto* only = parts_.size() == 1 ? std::get_if<Placeholder>(&parts_.front()) : nullptr;
  return only == nullptr ? space::Kind::kAny : only->kind;
}

std::string PlaceholderText::filled(const space::Expression::Lookup& values) const {
  std::string filled;
  for (const auto& part : parts_) {
    if (const auto* plain = std::get_if<std::string>(&part)) {
      filled += *plain;
      continue;
    }
    const Placeholder& placeholder = std::get<Placeholder>(part);
    const std::optional<space::Value> value = placeholder.expression.value(values);
    if (!value || (space::is_number(*value) && !std::isfinite(space::as_number(*value)))) {
      throw UserError(fmt::format("'{}' has no value", placeholder.text), "it divides by zero, or is out of range");
    }
    std::optional<std::string> text;
    try {
      text = placeholder.format.empty() ? space::to_string(*value) : formatted_value(placeholder.format, *value);
    } catch (const fmt::format_error&) {
      // The error is thrown below.
    }
    if (!text) {
      throw UserError(fmt::format("'{}' is {}, which '{}' cannot write", placeholder.text, space::to_string(*value),
                                  placeholder.format),
                      "write .0f, or .3g");
    }
    filled += *text;
  }
  return filled;
}

space::Expression::Lookup lookup_in(const NamedValues& values) {
  return [&values](std::string_view name) -> const space::Value* {
    const auto found = values.find(name);
    return found == values.end() ? nullptr : &found->second;
  };
}

namespace {

std::vector<space::Parameter> with_fixed(const space::Space& space) {
  std::vector<space::Parameter> parameters = space.parameters();
  for (const auto& [name, value] : space.facts().fixed) parameters.push_back({name, {value}});
  return parameters;
}

NamedValues values_of_trial(const TrialNames& trial) {
  return {{"dir", trial.dir},   {"config", trial.config}, {"result", trial.result}, {"trial", trial.trial},
          {"port", trial.port}, {"slot", trial.slot},     {"gpus", trial.gpus}};
}

}  // namespace

std::string gpu_list(const std::vector<int>& gpus) {
  std::string text;
  for (const int gpu : gpus) text += (text.empty() ? "" : ",") + std::to_string(gpu);
  return text;
}

bool is_name_of_trial(std::string_view name) { return values_of_trial({}).contains(name); }

// The trial's own names come first, so a parameter with the same name does not change any command.
JobNames::JobNames(const space::Space& space)
    : parameters_(with_fixed(space)),
      fixed_(space.facts().fixed),
      well_known_(space.facts().well_known),
      vocabulary_(parameters_, space.facts()) {
  for (const char* text : {"config", "result", "dir", "gpus"}) known_.push_back({text, space::Kind::kText});
  for (const char* number : {"trial", "port", "slot"}) known_.push_back({number, space::Kind::kNumber});
  std::vector<std::string> names = vocabulary_.names();
  if (vocabulary_.derives_accumulation()) names.emplace_back(space::kAccumulation);
  for (const std::string& name : names) {
    if (find_name(known_, name) == nullptr) known_.push_back({name, vocabulary_.kind_of(vocabulary_.meaning_of(name))});
  }
}

NamedValues JobNames::values(const space::Configuration& configuration, const TrialNames& trial) const {
  space::Configuration whole = configuration;
  for (const auto& [name, value] : fixed_) {
    if (!whole.has(name)) whole.set(name, value);
  }
  NamedValues values = values_of_trial(trial);
  for (const space::Parameter& parameter : parameters_) {
    const space::Value* given = whole.find(parameter.name);
    if (given == nullptr && well_known_) given = vocabulary_.default_of(parameter.name);
    values.emplace(parameter.name, given != nullptr ? *given : space::first_value(parameter));
  }
  for (const KnownName& name : known_) {
    if (values.contains(name.name)) continue;
    space::Value scratch = false;
    const space::Value* value = vocabulary_.look_up(name.name, whole, true, scratch);
    if (value == nullptr) continue;
    const auto* number = std::get_if<double>(value);
    values.emplace(name.name, number != nullptr ? space::number_value(*number) : *value);
  }
  return values;
}

std::int64_t free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t size = sizeof(address);
  auto* plain = reinterpret_cast<sockaddr*>(&address);
  const bool found = socket >= 0 && ::bind(socket, plain, size) == 0 && ::getsockname(socket, plain, &size) == 0;
  if (socket >= 0) ::close(socket);
  if (!found) throw EnvironmentError("no TCP port is free on this machine", "end programs that use them");
  return ntohs(address.sin_port);
}

}  // namespace krigtune::trial
