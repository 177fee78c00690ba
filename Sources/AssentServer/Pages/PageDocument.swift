import AssentCore
import Foundation
import HTTPTypes
import Hummingbird
import NIOCore

/// A whole page of ours: nothing from elsewhere, in nobody's frame, and no script but the one that sends a form on.
struct PageDocument {
    /// What the window is called.
    let title: String

    /// What is on it.
    let body: HTML

    /// What is around it.
    let frame: PageFrame

    /// Where its form may lead besides this server, as sources of a Content Security Policy. Browsers check redirects
    /// that follow a form as well.
    var formTargets: [String] = []

    /// Where the browser goes by itself, without the form's policy counting; checked beforehand.
    var next: String?

    /// Whether its form is sent without anybody pressing its button.
    var isSubmitted = false

    /// The only script that there is. Its digest is in the policy of the pages that have it.
    private static let submission: HTML = "document.forms[0].submit()"

    /// The page's text.
    var html: HTML {
        // Without quotes around it: browsers would end it at an apostrophe of its own.
        let refresh: HTML? = next.map { #"<meta http-equiv="refresh" content="0; url=\#(exact: $0)">"# }
        return """
            <!DOCTYPE html>
            <html lang="\(exact: frame.language.tag)">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <meta name="color-scheme" content="light dark">
            <meta name="robots" content="noindex">
            \(refresh)<title>\(title)\(frame.name.map { " – \($0)" as HTML })</title>
            <link rel="icon" href="data:,">
            <link rel="stylesheet" href="\(exact: frame.stylesheet)">
            </head>
            <body>
            <main>
            \(frame.brand)\(body)
            </main>
            \(isSubmitted ? "<script>\(Self.submission)</script>" as HTML : nil)
            </body>
            </html>

            """
    }

    /// The page as a reply that no cache keeps.
    func response(_ status: Int = 200) -> Response {
        var headers = Self.headers
        headers[.contentSecurityPolicy] =
            "default-src 'none'; \(scriptPolicy)style-src 'self'; img-src data:; base-uri 'none'; frame-ancestors 'none'; form-action "
            + (["'self'"] + formTargets).joined(separator: " ")
        headers[.contentType] = "text/html; charset=utf-8"
        headers[.contentLanguage] = frame.language.tag
        headers[.vary] = "Accept-Language"
        return Response(
            status: .init(code: status), headers: headers,
            body: ResponseBody(byteBuffer: ByteBuffer(string: html.description)))
    }

    private var scriptPolicy: String {
        guard isSubmitted else { return "" }
        let digest = Data(SHA2.sha256(Self.submission.description.utf8)).base64EncodedString()
        return "script-src 'sha256-\(digest)'; "
    }

    /// What every reply to a browser says. `same-origin` lets the browser name our origin when our own form is sent,
    /// which is how it is told from another site's.
    static let headers: HTTPFields = [
        .cacheControl: "no-store", .xContentTypeOptions: "nosniff", .xFrameOptions: "DENY",
        .referrerPolicy: "same-origin",
    ]
}

extension HTTPField.Name {
    static let contentLanguage = HTTPField.Name("Content-Language")!
    static let referrerPolicy = HTTPField.Name("Referrer-Policy")!
    static let xFrameOptions = HTTPField.Name("X-Frame-Options")!
}
