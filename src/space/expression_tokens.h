#pragma once
#include <string>
#include <string_view>

namespace krigtune {

struct Token {
  enum class Is { kEnd, kNumber, kText, kName, kSymbol } is = Is::kEnd;
  std::string_view text;  ///< as written; of a text: without its quotes
  double number = 0.0;
  std::size_t at = 0;  ///< character, from 0
};

/// Cuts an expression into tokens, one ahead. `text` must outlive it.
/// Throws UserError "at character 15: ..." for what is no token, with the operator that was meant.
class Tokens {
 public:
  explicit Tokens(std::string_view text) : text_(text) { advance(); }

  const Token& next() const { return next_; }
  bool next_is(std::string_view symbol) const { return next_.is == Token::Is::kSymbol && next_.text == symbol; }
  /// Moves on to the token after next().
  void advance();

 private:
  Token number() const;
  Token quoted() const;
  Token name() const;
  Token symbol() const;

  std::string_view text_;
  std::size_t end_ = 0;  ///< of next_
  Token next_;
};

}  // namespace krigtune
