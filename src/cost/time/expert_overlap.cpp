#include "cost/time/expert_overlap.h"

#include <algorithm>
#include <array>

#include "cost/time/tensor_overlap.h"

namespace krigtune::cost {
namespace {

constexpr std::size_t kExchanges = 2;

}  // namespace

TimeAround time_around(const PassWithExchanges& pass) {
  TimeAround time;
  if (pass.exchanges.size() != kExchanges) return time;
  for (std::size_t i = 0; i < pass.pass.operations.size(); ++i) {
    if (i == pass.exchanges.front() || i == pass.exchanges.back()) continue;
    const bool is_between = i > pass.exchanges.front() && i < pass.exchanges.back();
    (is_between ? time.between_s : time.outside_s) += pass.pass.operations[i].segment.work_s;
  }
  return time;
}

void hide(const PassWithExchanges& pass, double beside_first_s, double beside_second_s, double slowdown) {
  if (pass.exchanges.size() != kExchanges) return;
  const std::array beside_s = {beside_first_s, beside_second_s};
  for (std::size_t i = 0; i < kExchanges; ++i) {
    TemplateOperation& exchange = pass.pass.operations[pass.exchanges[i]];
    const double all_s = exchange.segment.work_s;
    const double exposed_s = all_s - kHiddenShare * (all_s - exposed_beside_s(all_s, beside_s[i], slowdown));
    exchange.segment = single(exposed_s, exchange.segment.issue_s, true);
    exchange.link_s = std::min(exchange.link_s, exposed_s);
  }
  pass.pass.all = {};
  for (const TemplateOperation& operation : pass.pass.operations) pass.pass.all.append(operation.segment);
}

}  // namespace krigtune::cost
