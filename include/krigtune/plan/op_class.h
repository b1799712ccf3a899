#pragma once
#include "krigtune/plan/step_plan.h"
#include "krigtune/workload/measured_machine.h"
#include "krigtune/workload/rates.h"

namespace krigtune {

/// Of an operation that is no collective.
OpClass class_of(const Operation& operation);

/// Of a collective: as which one it is measured and predicted.
ExchangeKind exchange_of(OpKind kind);

}  // namespace krigtune
