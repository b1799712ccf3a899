#pragma once
// The functions of one VectorUnit. Their source files are compiled once for every kind of vector unit, each time in
// another namespace and with another name for Eigen (CMakeLists.txt). Otherwise the linker could keep an inline
// function of Eigen that was compiled for AVX-512 for the whole program.
#include "vector_unit/vector_unit.h"

namespace krigtune::surrogate::KRIGTUNE_VECTOR_UNIT {

using Index = VectorUnit::Index;

bool cholesky(Index n, double* a, Index a_stride);
void solve_rows(Index m, Index n, const double* lower, Index lower_stride, double* b, Index b_stride);
void subtract_product(Index m, Index n, Index k, const double* a, Index a_stride, const double* b, Index b_stride,
                      double* c, Index c_stride);
void invert(Index n, double* lower, Index lower_stride);
void add_moments(Index m, Index n, const double* v, Index v_stride, const double* weights, double* sums,
                 double* squares);

VectorUnit::Profile matern52();
VectorUnit::Profile matern32();
VectorUnit::Profile squared_exponential();
void add_squares(Index n, Index d, const double* x, Index x_stride, const double* y, Index y_stride, double* r2);
void add_mismatches(Index n, Index d, const double* x, Index x_stride, const double* y, Index y_stride,
                    const double* weights, double* r2);
void sum_squares(Index n, Index d, const double* x, Index x_stride, const double* y, Index y_stride,
                 const double* weights, double* sums);
void sum_mismatches(Index n, Index d, const double* x, Index x_stride, const double* y, Index y_stride,
                    const double* weights, double* sums);

void log_h(Index n, const double* u, double* result);
void log_normal_cdf(Index n, const double* z, double* result);

}  // namespace krigtune::surrogate::KRIGTUNE_VECTOR_UNIT
