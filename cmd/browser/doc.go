// Package browser tries the web console out in a real browser: Chromium without a window, on
// nodes of this process. Its tests are skipped where there is no Chromium, unless
// DIVAN_REQUIRE_BROWSER is set; DIVAN_SCREENSHOTS names a directory for pictures of each screen.
package browser
