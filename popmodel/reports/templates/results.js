// What commands of results can do.
"use strict";
{
  const make = (name, properties) => Object.assign(document.createElement(name), properties);

  // A command gets a button that copies it. A browser may give files no clipboard: then the command
  // is selected, so that the keys for copying do the rest.
  function copyable(command) {
    const button = make("button", {type: "button", textContent: "Copy"});
    button.setAttribute("aria-label", `Copy: ${command.getAttribute("aria-label")}`);
    const told = make("span", {});
    told.setAttribute("role", "status");
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(command.textContent);
        told.textContent = "copied";
      } catch {
        getSelection().selectAllChildren(command);
        told.textContent = "selected: copy it with the keyboard";
      }
    });
    const line = make("div", {className: "controls copying"});
    line.append(button, told);
    command.after(line);
  }

  document.querySelectorAll("pre.command").forEach(copyable);
}
