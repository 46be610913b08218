// Package browser tries the web console out in a real browser: Chromium without a window, on
// nodes of this process. Its tests run where DIVAN_REQUIRE_BROWSER is set, as ./dev browser does.
// DIVAN_SCREENSHOTS names a directory for pictures of each screen.
package browser
