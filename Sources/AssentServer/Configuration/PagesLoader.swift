import AssentConfiguration
import AssentCore
import Foundation

/// Reads `pages`: the operator's name, logo and languages.
struct PagesLoader {
    let reader: SettingsReader<Void>
    let paths: ConfigurationPaths

    /// How the pages look.
    func design() throws -> PageDesign {
        let name = reader.optionalString("name")
        if let name, name.isEmpty || (try? DisplayText(name, limit: 100)) == nil {
            throw reader.issue("name", "must be a text of at most 100 characters, all of which can be seen")
        }
        let logo = try logo()
        if logo != nil, name == nil {
            throw reader.issue("name", "is missing: screen readers read it out in the place of the logo")
        }
        let design = PageDesign(name: name, logo: logo, languages: try languages())
        reader.finish()
        return design
    }

    private func logo() throws -> PageLogo? {
        guard let file = reader.optionalString("logo").map(paths.resolve) else { return nil }
        guard let handle = FileHandle(forReadingAtPath: file),
            let data = try? handle.read(upToCount: PageLogo.limit + 1)
        else { throw reader.issue("logo", "\(file) cannot be read") }
        guard let logo = PageLogo(Array(data)) else {
            throw reader.issue("logo", "\(file) must be a PNG, JPEG, WebP or SVG of at most 64 KiB")
        }
        return logo
    }

    private func languages() throws -> PageLanguages {
        var own: [String: [String: String]] = [:]
        if let reader = reader.optionalMapping("languages") {
            for tag in reader.keys {
                guard (2...35).contains(tag.utf8.count), tag.utf8.allSatisfy(Self.isTagByte) else {
                    throw reader.issue(tag, "is not a language: write it as de, or pt-br, in small letters")
                }
                own[tag] = reader.stringsByName(tag)
            }
            reader.finish()
        }
        let fallback = reader.optionalString("language") ?? "en"
        let languages = PageLanguages(adding: own, fallback: fallback)
        guard languages.contains(fallback) else {
            throw reader.issue("language", "there is no language \(fallback): en, de, or one of languages")
        }
        return languages
    }

    private static func isTagByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"): true
        default: false
        }
    }
}
