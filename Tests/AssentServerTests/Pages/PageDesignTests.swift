import Foundation
import Testing

@testable import AssentServer

@Suite("Whose the hosted pages are")
struct PageDesignTests {
    private static let svg = #"<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>"#

    private static let settings = """
        pages:
          name: Bank & Söhne
          logo: logo.svg
          language: de
          languages:
            fr: {Sign in: Se connecter}

        """

    private func directory() throws -> URL {
        let directory = FileManager.default.temporaryDirectory.appending(path: "assent-pages-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        return directory
    }

    @Test("Name and logo are on each page, the logo in our own style sheet; the policy stays as strict as it is")
    func brand() async throws {
        let directory = try directory()
        defer { try? FileManager.default.removeItem(at: directory) }
        let logo = directory.appending(path: "logo.svg").path
        try Data(Self.svg.utf8).write(to: URL(filePath: logo))
        let settings = Self.settings.replacing("logo.svg", with: logo)
        let fixture = try await ServerFixture(editing: {
            $0.replacing("passwordCost:", with: settings + "passwordCost:")
        })
        let browser = Browser(fixture)
        let first = try await browser.open(fixture.signInPage([("realm", "/alpha"), ("service", "Quick")]))
        for page in [first, try await browser.open(fixture.signInPage([("realm", "/nowhere")]))] {
            #expect(
                page.text.contains(#"<p class="brand"><span class="logo" role="img" aria-label="Bank &amp; Söhne">"#))
            #expect(page.text.contains(" – Bank &amp; Söhne</title>") && page.text.contains(#"<html lang="de">"#))
            #expect(page.answer["Content-Language"] == "de" && page.answer["Vary"] == "Accept-Language")
            #expect(page.answer["Content-Security-Policy"]?.contains("style-src 'self'; img-src data:; ") == true)
            #expect(!page.text.contains("data:image"))
        }
        #expect(first.text.contains(">Benutzername</label>"))
        let href = try #require(first.text.firstMatch(of: /rel="stylesheet" href="([^"]*)"/)).1
        let style = try await browser.open(browser.origin + href)
        #expect(style.text.contains(".logo { background-image: url(\"data:image/svg+xml;base64,"))
        let french = try await browser.open(
            fixture.signInPage([("realm", "/alpha"), ("service", "Quick")]), [("Accept-Language", "fr-CH, fr;q=0.9")])
        #expect(french.text.contains("<h1>Se connecter</h1>") && french.text.contains(#"<html lang="fr">"#))
        let welcome = try await browser.open(fixture.server(""), [("Accept-Language", "en")])
        #expect(welcome.text.contains("<h1>Bank &amp; Söhne</h1>"))
        await fixture.stop()
    }

    @Test("A logo is a picture of a known kind, and small")
    func logo() {
        let png: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
        #expect(PageLogo(png)?.url.hasPrefix("data:image/png;base64,") == true)
        #expect(PageLogo([0xFF, 0xD8, 0xFF, 0xE0])?.url.hasPrefix("data:image/jpeg;base64,") == true)
        #expect(PageLogo(Array("RIFF....WEBPVP8 ".utf8))?.url.hasPrefix("data:image/webp;base64,") == true)
        #expect(PageLogo(Array("<?xml version=\"1.0\"?><svg/>".utf8))?.url.hasPrefix("data:image/svg+xml;") == true)
        for other in ["", "GIF89a", "<html><svg/></html>", "RIFF....WAVE", "\u{FEFF}<svg"] {
            #expect(PageLogo(Array(other.utf8)) == nil, "\(other)")
        }
        #expect(PageLogo(png + [UInt8](repeating: 0, count: PageLogo.limit - png.count)) != nil)
        #expect(PageLogo(png + [UInt8](repeating: 0, count: PageLogo.limit)) == nil)
    }
}
