import AssentCore
import Foundation
import HTTPTypes

/// What all pages have in common: whose they are, how they look, and their languages.
struct PageDesign: Sendable, Hashable {
    /// The operator's name, as users know it.
    let name: String?

    /// Whether the operator has a logo. It is in the style sheet.
    let hasLogo: Bool

    /// How the pages look.
    let stylesheet: Stylesheet

    /// The languages.
    let languages: PageLanguages

    init(name: String? = nil, logo: PageLogo? = nil, languages: PageLanguages = PageLanguages()) {
        self.name = name
        hasLogo = logo != nil
        stylesheet = Stylesheet(logo: logo)
        self.languages = languages
    }

    /// The frame of a page for a browser that sends these fields.
    ///
    /// - Parameters:
    ///   - fields: what the browser says of itself.
    ///   - basePath: the path of the server's public URL.
    ///   - locales: the languages that a client would have (`ui_locales`, OpenID Connect Core §3.1.2.1).
    /// - Returns: the frame.
    func frame(_ fields: HTTPFields, below basePath: String, locales: String? = nil) -> PageFrame {
        PageFrame(
            name: name, hasLogo: hasLogo, stylesheet: stylesheet.path(below: basePath),
            language: locales.flatMap(languages.language(wished:)) ?? languages.language(for: fields))
    }
}

/// What is around a page's content, in the language of its reader.
struct PageFrame: Sendable, Hashable {
    var name: String?
    var hasLogo = false
    var stylesheet: String
    var language = PageLanguage.english

    /// The operator, above the content.
    var brand: HTML? {
        guard let name else { return nil }
        guard hasLogo else { return "<p class=\"brand\">\(name)</p>\n" }
        return "<p class=\"brand\"><span class=\"logo\" role=\"img\" aria-label=\"\(name)\"></span></p>\n"
    }
}

/// The operator's logo: a picture that is small enough to be in the style sheet.
struct PageLogo: Sendable, Hashable {
    /// The picture as a `data:` URL, which the pages' policy allows.
    let url: String

    /// The most bytes of a picture.
    static let limit = 64 << 10

    /// A picture; `nil` for what is not a PNG, JPEG, WebP or SVG, or is too large. A browser runs no script of a
    /// picture in a style sheet, and loads nothing for it.
    init?(_ bytes: [UInt8]) {
        guard bytes.count <= Self.limit, let type = Self.mediaType(bytes) else { return nil }
        url = "data:\(type);base64,\(Data(bytes).base64EncodedString())"
    }

    private static func mediaType(_ bytes: [UInt8]) -> String? {
        if bytes.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) { return "image/png" }
        if bytes.starts(with: [0xFF, 0xD8, 0xFF]) { return "image/jpeg" }
        if bytes.starts(with: Array("RIFF".utf8)), bytes.dropFirst(8).starts(with: Array("WEBP".utf8)) {
            return "image/webp"
        }
        guard let text = String(validating: bytes, as: UTF8.self), text.contains("<svg") else { return nil }
        return text.hasPrefix("<svg") || text.hasPrefix("<?xml") ? "image/svg+xml" : nil
    }
}
