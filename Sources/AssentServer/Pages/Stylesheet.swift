import AssentCore
import HTTPTypes
import Hummingbird
import NIOCore

/// How the hosted pages look.
struct Stylesheet: Sendable, Hashable {
    private let text: String

    /// Changes with the text, so that a browser may keep it for ever.
    private let version: String

    /// The style, with the operator's logo.
    init(logo: PageLogo?) {
        text = Self.text + (logo.map { ".logo { background-image: url(\"\($0.url)\"); }\n" } ?? "")
        version = Hex.encode(SHA2.sha256(text.utf8).prefix(6))
    }

    /// Where it is, below the path of the public URL.
    func path(below basePath: String) -> String { "\(basePath)/UI/style.css?\(version)" }

    var response: Response {
        Response(
            status: .ok,
            headers: [
                .contentType: "text/css; charset=utf-8", .xContentTypeOptions: "nosniff",
                .cacheControl: "public, max-age=31536000, immutable",
            ], body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
    }

    private static let text = """
        :root {
          color-scheme: light dark;
          --ink: #16202c; --dim: #566273; --line: #cbd3dc; --edge: #7d8a9a; --card: #ffffff; --back: #eef2f6;
          --accent: #0b57b7; --accent-ink: #ffffff; --accent-over: #094794; --soft: #e6eefa;
          --bad: #b3201d; --bad-back: #fdecec; --warn: #7a4b00; --warn-back: #fff4db;
        }
        @media (prefers-color-scheme: dark) {
          :root {
            --ink: #e8edf3; --dim: #a4b0be; --line: #3c4856; --edge: #76869a; --card: #1b222b; --back: #10151b;
            --accent: #7fb4ff; --accent-ink: #08203f; --accent-over: #a6cbff; --soft: #24364f;
            --bad: #ffaba6; --bad-back: #47191a; --warn: #ffd58a; --warn-back: #40300f;
          }
        }
        * { box-sizing: border-box; }
        html { font: 100%/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
        body {
          margin: 0; min-height: 100vh; min-height: 100dvh; display: grid; place-items: center; padding: 1.5rem;
          color: var(--ink); background: var(--back);
        }
        main {
          width: 100%; max-width: 25rem; padding: 2.25rem; border-radius: 1rem; background: var(--card);
          box-shadow: 0 1px 2px rgb(0 0 0 / .08), 0 12px 32px rgb(0 0 0 / .08);
        }
        .brand { margin: 0 0 1.25rem; font-weight: 600; color: var(--dim); overflow-wrap: anywhere; }
        .logo { display: block; height: 3rem; background: left center / contain no-repeat; forced-color-adjust: none; }
        h1 { margin: 0 0 .25rem; font-size: 1.6rem; line-height: 1.25; font-weight: 650; letter-spacing: -.01em; }
        p { margin: 0; }
        .lead { color: var(--dim); overflow-wrap: anywhere; }
        .lead strong { color: var(--ink); font-weight: 600; }
        form { margin-top: 1.5rem; display: grid; gap: 1.15rem; }
        .field { display: grid; gap: .35rem; }
        label, legend { font-weight: 550; font-size: .95rem; overflow-wrap: anywhere; }
        input[type=text], input[type=password] {
          width: 100%; min-height: 2.9rem; padding: .55rem .8rem; font: inherit; color: inherit;
          background: transparent; border: 1px solid var(--edge); border-radius: .6rem;
        }
        input[autocomplete=one-time-code] { font-size: 1.2rem; letter-spacing: .15em; font-variant-numeric: tabular-nums; }
        input[aria-invalid=true] { border-color: var(--bad); }
        :focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
        fieldset { margin: 0; padding: 0; border: 0; display: grid; gap: .5rem; min-width: 0; }
        legend { padding: 0; margin-bottom: .5rem; }
        fieldset label {
          display: flex; gap: .7rem; align-items: center; min-height: 2.9rem; padding: .5rem .8rem; font-weight: 400;
          border: 1px solid var(--edge); border-radius: .6rem; cursor: pointer;
        }
        fieldset label:has(:checked) { border-color: var(--accent); background: var(--soft); }
        input[type=radio] { flex: none; width: 1.15rem; height: 1.15rem; margin: 0; accent-color: var(--accent); }
        .actions { display: grid; gap: .7rem; }
        p.actions:not(form *) { margin-top: 1.5rem; }
        button, .button {
          display: block; width: 100%; min-height: 2.9rem; padding: .65rem 1rem; font: inherit; font-weight: 600;
          text-align: center; text-decoration: none; cursor: pointer; border-radius: .6rem;
          color: var(--accent); background: transparent; border: 1px solid var(--edge); overflow-wrap: anywhere;
        }
        button[hidden] { display: none; }
        button:hover, .button:hover { background: var(--soft); }
        button.primary { color: var(--accent-ink); background: var(--accent); border-color: var(--accent); }
        button.primary:hover { background: var(--accent-over); border-color: var(--accent-over); }
        .alert, .warning, .message { margin-top: 1.25rem; padding: .75rem .9rem; border-radius: .6rem; overflow-wrap: anywhere; }
        form > .alert, form > .warning, form > .message { margin-top: 0; }
        .alert { color: var(--bad); background: var(--bad-back); }
        .warning { color: var(--warn); background: var(--warn-back); }
        .message { background: var(--soft); }
        .summary { margin: 1.25rem 0 0; border: 1px solid var(--line); border-radius: .75rem; overflow: hidden; }
        .summary div { display: grid; grid-template-columns: minmax(5rem, 30%) 1fr; gap: .35rem 1rem; padding: .8rem 1rem; }
        .summary div + div { border-top: 1px solid var(--line); }
        dt { grid-column: 1; color: var(--dim); overflow-wrap: anywhere; white-space: pre-wrap; }
        dd { grid-column: 2; margin: 0; font-weight: 600; overflow-wrap: anywhere; white-space: pre-wrap; text-align: right;
          unicode-bidi: plaintext; }
        .source { margin-top: .75rem; color: var(--dim); font-size: .85rem; overflow-wrap: anywhere; }
        @media (max-width: 30rem) {
          body { place-items: start stretch; padding: 0; background: var(--card); }
          main { max-width: none; padding: 2rem 1.25rem; border-radius: 0; box-shadow: none; }
        }
        @media (forced-colors: active) { main, .alert, .warning, .message { border: 1px solid; } }
        @media (prefers-contrast: more) { :root { --line: currentcolor; --edge: currentcolor; --dim: var(--ink); } }

        """
}
