#pragma once
#include <utility>

#include "trial/executor.h"

namespace krigtune {

/// A place that starts nothing: its program has ended as the test says.
class ScriptedPlace final : public trial::Place {
 public:
  explicit ScriptedPlace(trial::ProcessResult result, trial::PlaceFacts facts = {})
      : result_(std::move(result)), facts_(std::move(facts)) {}
  trial::PlaceFacts facts() const override { return facts_; }
  trial::ProcessResult run(const trial::ProcessSpec& spec, const Clock&) override {
    asked = spec;
    return result_;
  }
  std::string where() const override { return "n1, job 4711"; }

  trial::ProcessSpec asked;  ///< the last program

 private:
  trial::ProcessResult result_;
  trial::PlaceFacts facts_;
};

inline trial::ProcessResult lost_place(const std::string& why) {
  trial::ProcessResult result;
  result.lost = why;
  return result;
}

}  // namespace krigtune
