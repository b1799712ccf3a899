#pragma once
#include <algorithm>

namespace krigtune {

/// Operations of the compute stream in a row, as one. Kernels start behind their issuing: with issue times c_i and
/// durations d_i the last one ends max_i(c_1 + ... + c_i + d_i + ... + d_n) after issuing began, at least.
struct StepSegment {
  double work_s = 0.0;
  double comm_s = 0.0;   ///< of it: collectives
  double first_s = 0.0;  ///< issue of the first operation
  double issue_s = 0.0;  ///< of all
  double least_s = 0.0;  ///< from the beginning of issuing to the end
  bool empty = true;

  void append(const StepSegment& next) {
    if (next.empty) return;
    if (empty) first_s = next.first_s;
    least_s = std::max(least_s + next.work_s, issue_s + next.least_s);
    work_s += next.work_s;
    comm_s += next.comm_s;
    issue_s += next.issue_s;
    empty = false;
  }
};

inline StepSegment single(double seconds, double issue_s, bool collective = false) {
  return {seconds, collective ? seconds : 0.0, issue_s, issue_s, issue_s + seconds, false};
}

/// `times` of them in a row.
inline StepSegment repeated(const StepSegment& segment, double times) {
  if (times < 1.0 || segment.empty) return {};
  StepSegment row = segment;
  row.work_s *= times;
  row.comm_s *= times;
  row.issue_s *= times;
  row.least_s += (times - 1.0) * std::max(segment.work_s, segment.issue_s);
  return row;
}

}  // namespace krigtune
