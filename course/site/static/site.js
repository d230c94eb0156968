// What scrolls sideways can be scrolled by keyboard, too.
function reachable() {
  for (const box of document.querySelectorAll("pre, .shown, .table-wrapper, div.math"))
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
}
addEventListener("load", reachable);
addEventListener("resize", reachable);
