#include "fuzz/fuzz.h"
#include "journal/replayed_study.h"

KRIGTUNE_FUZZ(journal) {
  krigtune::journal::ReplayedStudy whole("journal.log");
  whole.apply(text);
  // The text is applied in two parts, as a reader sees it that looks while somebody writes.
  krigtune::journal::ReplayedStudy parts("journal.log");
  const std::size_t begin = parts.apply(text.substr(0, text.size() / 2));
  parts.apply(text.substr(begin));
  if (parts.trials().size() != whole.trials().size()) __builtin_trap();
}
