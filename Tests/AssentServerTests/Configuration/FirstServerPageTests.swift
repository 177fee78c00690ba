import Foundation
import Testing

@testable import AssentServer

@Suite("The article about the first server")
struct FirstServerPageTests {
    @Test("The file that it shows is one that the server accepts")
    func file() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let page = try String(
            contentsOf: root.appending(path: "Sources/AssentServer/AssentServer.docc/FirstServer.md"), encoding: .utf8)
        let block = try #require(page.firstMatch(of: /```yaml\n(?<yaml>[\s\S]*?)```/)?.yaml)
        let configuration = try ServerConfiguration.parse(String(block), file: "/etc/assent.yaml")
        #expect(configuration.isDevelopment && configuration.realms.map(\.name) == ["/alpha"])
        #expect(configuration.gateway?.routes.map(\.name) == ["service"])
    }
}
