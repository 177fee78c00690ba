import AssentConfiguration
import AssentCore
import Foundation
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("What the file says of gateways elsewhere")
struct EnforcementLoaderTests {
    private static let usual =
        #"edge: {clients: [edge], policySets: [bank], origins: ["https://localhost:9543"]}"#

    /// The realm `alpha` of a good file with these lines in the place of its groups.
    private static func groups(_ lines: String) throws -> [EnforcementGroup] {
        let good = FixtureConfiguration.yaml(upstream: 9080, refusing: 9081)
        let begin = try #require(good.range(of: "    enforcement:\n"))
        let end = try #require(good.range(of: "    policySets:\n", range: begin.upperBound..<good.endIndex))
        let indented = lines.split(separator: "\n").map { "      \($0)\n" }.joined()
        let text = good.replacingCharacters(in: begin.upperBound..<end.lowerBound, with: indented)
        let read = try ServerConfiguration.parse(text, file: "/etc/assent/assent.yaml")
        return try #require(read.realms.first { $0.name == "/alpha" }).enforcement
    }

    @Test("A group has its clients, sets and origins, and is believed nothing else unless the file says so")
    func usual() throws {
        let read = try #require(try Self.groups(Self.usual).first)
        #expect(
            read
                == EnforcementGroup(
                    name: "edge", clients: ["edge"], policySets: ["bank"],
                    origins: [try Origin("https://localhost:9543")]))
        #expect(!read.believesAddress && read.maxBodyBytes == 65_536)
    }

    @Test("All that can be said of several is read")
    func several() throws {
        let read = try Self.groups(
            """
            edge:
              clients: [edge, edge-free]
              policySets: [bank, rest]
              origins: ["https://a.example", "https://B.example:8443"]
              believesAddress: true
              maxBodyBytes: 16777216
            branch: {clients: [edge-two], policySets: [rest], origins: ["https://a.example"]}
            """)
        #expect(read.map(\.name) == ["edge", "branch"])
        let first = try #require(read.first)
        #expect(first.clients == ["edge", "edge-free"] && first.policySets == ["bank", "rest"])
        #expect(first.origins == [try Origin("https://a.example"), try Origin("https://b.example:8443")])
        #expect(first.believesAddress && first.maxBodyBytes == 16 << 20)
    }

    @Test(
        "A mistake is named",
        arguments: [
            ("clients: [edge]", "clients: [nobody]", "there is no client nobody"),
            ("clients: [edge]", "clients: [bank-app]", "client_credentials and the scope enforcement"),
            ("clients: [edge]", "clients: [jobs]", "client_credentials and the scope enforcement"),
            ("clients: [edge]", "clients: []", "must name a client"),
            ("policySets: [bank]", "policySets: [none]", "there is no policy set none"),
            ("policySets: [bank]", "policySets: []", "must name a policy set"),
            ("https://localhost:9543", "http://localhost:9543", "not an https origin"),
            ("https://localhost:9543", "https://localhost:9543/pay", "not an https origin"),
            (#"["https://localhost:9543"]"#, "[]", "must name an address"),
            ("edge: {", "\"ed ge\": {", "letters, digits"),
            ("edge: {", "edge: {maxBodyBytes: 0, ", "from 1 to 16777216"),
            ("edge: {", "edge: {beleivesAddress: true, ", "beleivesAddress"),
        ])
    func mistakes(part: String, other: String, expected: String) throws {
        try #require(Self.usual.contains(part))
        let error = #expect(throws: ConfigurationError.self) {
            _ = try Self.groups(Self.usual.replacing(part, with: other))
        }
        #expect(error?.message.contains(expected) == true, "\(error as Any)")
    }

    @Test(
        "A group cannot speak for the server itself, nor for the gateway beside it",
        arguments: ["publicURL: https://localhost:0/am", "  publicURL: https://localhost:0\n"])
    func ownOrigins(url: String) throws {
        let good = FixtureConfiguration.yaml(upstream: 9080, refusing: 9081)
        try #require(good.contains(url))
        for (port, isRefused) in [("9444", false), ("9543", true)] {
            let text = good.replacing(url, with: url.replacing(":0", with: ":\(port)"))
            var message: String?
            do {
                _ = try ServerConfiguration.parse(text, file: "/etc/assent/assent.yaml")
            } catch let error as ConfigurationError {
                message = error.message
            }
            #expect((message?.contains("cannot speak for https://localhost:9543") ?? false) == isRefused)
            #expect((message != nil) == isRefused, "\(message ?? "")")
        }
    }

    @Test("A client of two groups would have two rights, and is refused")
    func twoGroups() {
        let error = #expect(throws: ConfigurationError.self) {
            _ = try Self.groups(Self.usual + "\n" + Self.usual.replacing("edge: {", with: "branch: {"))
        }
        #expect(error?.message.contains("a client can be in one") == true, "\(error as Any)")
    }
}
