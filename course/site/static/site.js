// What scrolls sideways can be scrolled by keyboard, too.
function reachable() {
  for (const box of document.querySelectorAll("pre, .shown, .table-wrapper, div.math"))
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
}
addEventListener("load", reachable);
addEventListener("resize", reachable);

// The theme's two asides have no names, by which a screen reader tells them apart.
addEventListener("DOMContentLoaded", () => {
  for (const [place, name] of [[".sidebar-drawer", "All pages"], [".toc-drawer", "On this page"]])
    document.querySelector(place)?.setAttribute("aria-label", name);
});
