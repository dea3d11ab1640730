// A login link carries its code behind the #, which browsers keep to themselves. It is
// taken out of the address before anything else, and sent in the body of a form.
const code = location.hash.slice(1);
if (code) {
  history.replaceState(null, "", location.pathname);
  document.getElementById("busy").hidden = false;
  const form = document.getElementById("login");
  form.hidden = true;
  document.getElementById("secret").value = code;
  form.submit();
}
