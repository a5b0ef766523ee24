// Lets a reader choose among the versions that stand beside this one, which ../versions.js names; from a folder too.
const root = new URL(JSON.parse(document.getElementById("__config").textContent).base + "/", location)
const list = document.createElement("script")
list.src = new URL("../versions.js", root)
list.onload = () => {
  const choice = document.createElement("select")
  choice.className = "versions"
  choice.ariaLabel = "Version"
  for (const name of versions) choice.add(new Option(name, name, false, root.pathname.endsWith(`/${name}/`)))
  choice.onchange = () => { location = new URL(`../${choice.value}/index.html`, root) }
  document.querySelector(".md-header__title").after(choice)
}
document.head.append(list)
