"""How far a row is from normal rows, compared with labelled anomalies.

On each scale, standard deviations and normal scores, a row x has

    z(x) = (w F - 1/2 log(A / A_0)) / spread,    F = 1/2 log(D / D_0) - 0.3 * (local)

with D the mean squared distance to the nearest normal rows and A the one to the nearest labelled
anomalies, D_0 and A_0 what is typical of normal rows, and `local` how far those nearest normal rows
lie from others themselves. A row scores the larger z of the two scales.

Read in this order: coordinates, nearest, space, left_out, view, part.
"""
