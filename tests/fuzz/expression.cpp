#include "space/expression.h"

#include "fuzz/fuzz.h"

// The first letter of a name decides whether it is 3, a text or not known.
static const krigtune::space::Value* value_of(std::string_view name) {
  static const krigtune::space::Value number = std::int64_t{3};
  static const krigtune::space::Value word = std::string("text");
  if (name.front() < 'h') return &number;
  return name.front() < 't' ? &word : nullptr;
}

KRIGTUNE_FUZZ(expression) {
  try {
    static_cast<void>(krigtune::space::Expression::parse(text).holds(value_of));
  } catch (const krigtune::UserError&) {  // it may still be a value
  }
  const auto expression = krigtune::space::Expression::parse_value(text);
  static_cast<void>(expression.names());
  static_cast<void>(expression.value(value_of));
}
