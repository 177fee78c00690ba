import AssentAuthorization
import AssentCore
import AssentTokens
import AssentTesting
import Foundation
import HTTPTypes
import Testing

@Suite("Fields that an app gives")
struct ResourceFieldTests {
    /// Each row of the table as names that it covers.
    static let names = ProtectedField.table.flatMap { row in
        row.name.hasSuffix("-")
            ? ["Authorization", "Authenticate", "Connection", "x"].map { row.name + $0 } : [row.name]
    }

    @Test("16 A protected field is refused in each letter case and in each way to a request", arguments: names)
    func refused(name: String) throws {
        for spelling in cases(of: name) {
            for value in ["x", ""] {
                let request = ResourceRequest(path: "a", headers: try fields(spelling, value))
                #expect(RequestMaker.refusal(request) == .invalidHeaders, "\(spelling)")
            }
        }
    }

    @Test("16 The list is the one that is written down")
    func list() {
        #expect(
            ProtectedField.table.map(\.name).sorted() == [
                "authorization", "connection", "content-length", "cookie2", "dpop", "expect", "host", "keep-alive",
                "proxy-", "te", "trailer", "transfer-encoding", "upgrade", "user-agent", "x-txid",
            ])
    }

    @Test("16 The session's field is refused by the name that is configured")
    func session() throws {
        for spelling in cases(of: "iPlanetDirectoryPro") {
            #expect(RequestMaker.refusal(ResourceRequest(path: "a", headers: try fields(spelling))) == .invalidHeaders)
        }
        for spelling in cases(of: "Our-Session") {
            let request = ResourceRequest(path: "a", headers: try fields(spelling))
            #expect(throws: ResourceError(.fetchResource, .invalidHeaders, "")) {
                try request.httpCall(base: resources, sessionField: "our-session")
            }
            #expect(RequestMaker.refusal(request) == nil)
            // A name that ends in a hyphen is that of a family, as in the table.
            #expect(throws: ResourceError(.fetchResource, .invalidHeaders, "")) {
                try request.httpCall(base: resources, sessionField: "Our-")
            }
        }
    }

    @Test("16 A form with files writes its own Content-Type")
    func contentType() throws {
        for spelling in cases(of: "Content-Type") {
            let request = ResourceRequest(
                path: "a", method: .post, multipartData: [MultipartPart(name: "a", data: [])],
                headers: try fields(spelling, "multipart/form-data; boundary=x"))
            #expect(RequestMaker.refusal(request) == .invalidHeaders)
        }
    }

    @Test("16 In an HTTPCall, which an app's own client sends, each field has the fate that the table says")
    func ownClient() async throws {
        for row in ProtectedField.table + [.session("iPlanetDirectoryPro")] {
            let name = try #require(HTTPField.Name(row.name.hasSuffix("-") ? row.name + "x" : row.name))
            let world = World()
            world.change { $0.gateway = { _ in .json(200, [:]) } }
            var call = try get()
            call.request.headerFields[name] = "mine"
            let client = try await world.client(.both)
            switch row.inCall {
            case .besideOwnCredential:
                await #expect(throws: TokenError.self) { try await client.send(call) }
                #expect(world.calls.isEmpty)
                call.request.headerFields[.authorization] = "Basic x"
                _ = try await client.send(call)
                #expect(world.calls.map { $0.field(name.rawName) } == ["mine"])
            case .replacedBySession:
                _ = try await client.send(call)
                #expect(world.calls.map { $0.field(name.rawName) } == ["SESS"])
            case .replacesCredential, .asGiven:
                _ = try await client.send(call)
                #expect(world.calls.map { $0.field(name.rawName) } == ["mine"], "\(row.name)")
            }
        }
    }

    @Test("24 Other fields arrive as they are given: repeated, empty, long")
    func given() throws {
        var headers = HTTPFields()
        let name = try #require(HTTPField.Name("X-Own"))
        let values = ["a", "", "a", String(repeating: "x", count: 8 << 10), "b, c\td"]
        for value in values { headers.append(HTTPField(name: name, value: value)) }
        headers[.cookie] = "a=b"
        headers[.accept] = "text/*"
        for way in RequestMaker.allCases {
            let call = try way.make(ResourceRequest(path: "a", headers: headers)).httpCall(base: resources)
            #expect(call.request.headerFields[values: name] == values)
            #expect(call.request.headerFields == headers)
        }
    }

    @Test("24 A value that is not ASCII is refused", arguments: ["ä", "\u{E9}", "日本"])
    func nonASCII(value: String) throws {
        #expect(
            RequestMaker.refusal(ResourceRequest(path: "a", headers: try fields("X-Own", value))) == .invalidHeaders)
    }

    @Test("16 A refusal names the field and not its value")
    func secrecy() throws {
        let request = ResourceRequest(path: "a", headers: try fields("Authorization", "Bearer s3cret"))
        let error = #expect(throws: ResourceError.self) { try request.httpCall(base: resources) }
        let text = error.map { "\($0) \($0.localizedDescription)" } ?? ""
        #expect(text.contains("Authorization") && text.contains("10019") && !text.contains("s3cret"))
    }
}
