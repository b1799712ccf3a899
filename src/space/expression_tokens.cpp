#include "expression_tokens.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "expression_node.h"

namespace krigtune {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool goes_on_name(char c) { return begins_name(c) || is_digit(c) || c == '.'; }

// Longer ones first: the first that fits is taken.
constexpr std::array<std::string_view, 17> kSymbols = {"==", "!=", "<=", ">=", "&&", "||", "<", ">", "+",
                                                       "-",  "*",  "/",  "%",  "!",  "(",  ")", ","};

struct Foreign {
  std::string_view written;
  std::string_view mend;
};
// What other languages write; longer ones first.
constexpr std::array kForeignSymbols = {
    Foreign{"===", "write =="},
    Foreign{"!==", "write !="},
    Foreign{"<=>", "write <=, == or >="},
    Foreign{"**", "there are no powers: write a * a"},
    Foreign{"//", "write /"},
    Foreign{"=<", "write <="},
    Foreign{"=>", "write >="},
    Foreign{"<>", "write !="},
    Foreign{"<<", "write * 2"},
    Foreign{">>", "write / 2"},
    Foreign{"=", "write =="},
    Foreign{"&", "write &&"},
    Foreign{"|", "write ||"},
    Foreign{"^", "there are no powers: write a * a"},
    Foreign{"~", "write !"},
    Foreign{"\xE2\x89\xA4", "write <="},
    Foreign{"\xE2\x89\xA5", "write >="},
    Foreign{"\xE2\x89\xA0", "write !="},
    Foreign{"[", "there are no lists: write a == 1 || a == 2"},
    Foreign{"?", "there is no choice: write (a && b) || (!a && c)"},
    Foreign{";", "join conditions with &&"},
};
constexpr std::array kForeignWords = {
    Foreign{"and", "write &&"},
    Foreign{"or", "write ||"},
    Foreign{"not", "write !"},
    Foreign{"mod", "write %"},
    Foreign{"xor", "write !="},
    Foreign{"is", "write =="},
    Foreign{"in", "there are no lists: write a == 1 || a == 2"},
    Foreign{"if", "an implication is !a || b"},
    Foreign{"AND", "write &&"},
    Foreign{"OR", "write ||"},
    Foreign{"NOT", "write !"},
    Foreign{"True", "write true"},
    Foreign{"False", "write false"},
};

// The whole character, where it is one of several bytes.
std::string_view character_at(std::string_view text, std::size_t at) {
  std::size_t length = 1;
  while (at + length < text.size() && (static_cast<unsigned char>(text[at + length]) & 0xC0U) == 0x80U) ++length;
  return text.substr(at, length);
}

}  // namespace

void Tokens::advance() {
  std::size_t at = end_;
  while (at < text_.size() && (text_[at] == ' ' || text_[at] == '\t' || text_[at] == '\n' || text_[at] == '\r')) ++at;
  end_ = at;
  if (at == text_.size()) {
    next_ = {Token::Is::kEnd, {}, 0.0, at};
    return;
  }
  const char first = text_[at];
  const bool fraction = first == '.' && at + 1 < text_.size() && is_digit(text_[at + 1]);
  if (is_digit(first) || fraction) {
    next_ = number();
    end_ = at + next_.text.size();
  } else if (first == '\'' || first == '"') {
    next_ = quoted();
    end_ = at + next_.text.size() + 2;
  } else {
    next_ = begins_name(first) ? name() : symbol();
    end_ = at + next_.text.size();
  }
}

Token Tokens::number() const {
  Token token{Token::Is::kNumber, {}, 0.0, end_};
  const char* begin = text_.data() + end_;
  const auto [stop, error] = std::from_chars(begin, text_.data() + text_.size(), token.number);
  const auto length = static_cast<std::size_t>(stop - begin);
  std::size_t all = length;
  while (end_ + all < text_.size() && goes_on_name(text_[end_ + all])) ++all;
  token.text = text_.substr(end_, all);
  if (error != std::errc() || !std::isfinite(token.number)) {
    fail_at(end_, fmt::format("the number {} is out of range", token.text), "write a number up to 1e308");
  }
  if (all != length) {
    fail_at(end_, fmt::format("'{}' is no number", token.text), "write 65536 or 6.5e4; names begin with a letter");
  }
  return token;
}

Token Tokens::quoted() const {
  const std::size_t close = text_.find(text_[end_], end_ + 1);
  if (close == std::string_view::npos) {
    fail_at(end_, "the text does not end", fmt::format("close it with {}", text_[end_]));
  }
  return {Token::Is::kText, text_.substr(end_ + 1, close - end_ - 1), 0.0, end_};
}

Token Tokens::name() const {
  std::size_t length = 1;
  while (end_ + length < text_.size() && goes_on_name(text_[end_ + length])) ++length;
  const std::string_view name = text_.substr(end_, length);
  for (const Foreign& word : kForeignWords) {
    if (name == word.written) fail_at(end_, fmt::format("unknown operator '{}'", name), std::string(word.mend));
  }
  return {Token::Is::kName, name, 0.0, end_};
}

Token Tokens::symbol() const {
  const std::string_view rest = text_.substr(end_);
  for (const Foreign& foreign : kForeignSymbols) {
    const bool is_ours = rest.substr(0, 2) == "&&" || rest.substr(0, 2) == "||";
    const bool is_equal = rest.substr(0, 2) == "==" && rest.substr(0, 3) != "===";
    if (is_ours || is_equal || rest.substr(0, foreign.written.size()) != foreign.written) continue;
    fail_at(end_, fmt::format("unknown operator '{}'", foreign.written), std::string(foreign.mend));
  }
  for (const std::string_view symbol : kSymbols) {
    if (rest.substr(0, symbol.size()) == symbol) return {Token::Is::kSymbol, rest.substr(0, symbol.size()), 0.0, end_};
  }
  fail_at(end_, fmt::format("unexpected character '{}'", character_at(text_, end_)),
          "known: + - * / % == != <= >= < > && || ! ( ) , min max");
}

}  // namespace krigtune
