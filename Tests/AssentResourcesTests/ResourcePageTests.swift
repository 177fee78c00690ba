import Assent
import AssentTesting
import Foundation
import HTTPTypes
import Testing

@testable import AssentResources

@Suite("The tables of docs/resources.md")
struct ResourcePageTests {
    @Test("Row 19: each error has the number of its row, and each number a row")
    func errors() throws {
        let rows = try table("errors")
        for row in rows { #expect(ResourceError.Code(rawValue: row[2]).number == Int(row[1]), "\(row)") }
        let transport = ResourceError.Code.all.filter { $0.number < 0 }
        #expect(rows.count + transport.count == ResourceError.Code.all.count)
    }

    @Test("Each kind has the error domain of its row")
    func kinds() throws {
        let rows = try table("kinds")
        #expect(rows.map { $0[0] } == CallKind.allCases.map(\.rawValue))
        for row in rows { #expect(CallKind(rawValue: row[0])?.domain.rawValue == row[5]) }
    }

    @Test("An origin gets the kinds of its row, and is sent nothing of the others")
    func origins() async throws {
        let accesses: [String: ResourceAccess] = [
            "accessToken": .accessToken, "accessToken(of: [.implicit])": .accessToken(of: [.implicit]),
            "accessToken(of: [.device])": .accessToken(of: [.device]),
            "accessToken(of: [.user, .device])": .accessToken(of: [.user, .device]), "session": .session,
            "both": .both, "nothing": .nothing,
        ]
        let rows = try table("origins")
        #expect(rows.count == accesses.count + 1)
        for row in rows {
            #expect(row[0] == "not named" || accesses[row[0]] != nil)
            let world = ResourceWorld()
            let assent = try await world.assent(accesses[row[0]].map { [api: $0] } ?? [:], signedIn: true)
            // Only the user has a token: what else is let through fails for want of one, and not by the origin.
            let missing: [String: ResourceError.Code] = [
                "implicit": .userNotAuthenticatedImplicitly, "device": .deviceNotAuthenticated,
            ]
            #expect(row.count == CallKind.allCases.count + 1)
            for (kind, cell) in zip(CallKind.allCases.map(\.rawValue), row.dropFirst()) {
                let code = await outcome(kind, assent)
                let expected = cell == "refused" ? ResourceError.Code.hostRefused : missing[kind]
                #expect(code == expected, "\(row[0]), \(kind)")
            }
            if row.dropFirst().allSatisfy({ $0 == "refused" }) { #expect(world.sent.isEmpty) }
        }
    }

    private func outcome(_ kind: String, _ assent: Assent) async -> ResourceError.Code? {
        do throws(ResourceError) {
            switch kind {
            case "user": _ = try await assent.userClient.sendAuthenticatedRequest(.get("accounts"))
            case "implicit": _ = try await assent.userClient.sendImplicitRequest(.get("accounts"))
            case "device": _ = try await assent.deviceClient.sendRequest(.get("accounts"))
            default: _ = try await assent.deviceClient.sendUnauthenticatedRequest(.get("accounts"))
            }
            return nil
        } catch {
            return error.code
        }
    }

    @Test("Row 23: each path leads where its row says, or is refused, in each way to a request and in any letter case")
    func paths() throws {
        let rows = try table("paths")
        #expect(rows.count == 24)
        for row in rows {
            let base = row[0] == "nil" ? nil : row[0]
            let isRefused = row[2] == "refused"
            // What a path leads to keeps its case; what is refused is refused in every case.
            for path in isRefused ? [row[1], row[1].uppercased(), row[1].lowercased()] : [row[1]] {
                for request in requests(path) {
                    if isRefused {
                        let error = #expect(throws: ResourceError.self) { try request.httpCall(base: base) }
                        #expect(error?.code == .invalidRequest, "\(row)")
                    } else {
                        let call = try request.httpCall(base: base)
                        #expect(call.request.url == row[2], "\(row)")
                    }
                }
            }
        }
    }

    /// The same request, made in each way.
    private func requests(_ path: String) -> [ResourceRequest] {
        var draft = MutableResourceRequest()
        draft.path = path
        return [
            ResourceRequest(path: path), draft.immutable, RequestBuilder().setPath(path).build(),
            ResourceRequestFactory.makeResourceRequest(path: path),
        ]
    }

    @Test("Row 13: what is sent with each method is what its row says, and a body takes the parameters' place")
    func content() async throws {
        let rows = try table("content")
        #expect(Set(rows.map { $0[0] }) == Set(ResourceRequest.methods.map(\.rawValue)) && rows.count == 6)
        for row in rows {
            let method = try #require(HTTPRequest.Method(row[0]))
            func call(
                _ encoding: ParametersEncoding, _ body: HTTPBody? = nil, _ parts: [MultipartPart] = []
            ) throws -> HTTPCall {
                try ResourceRequest(
                    path: "\(api)/x", method: method, parameters: ["a": 1], parametersEncoding: encoding, body: body,
                    multipartData: parts
                ).httpCall()
            }
            let types: [ParametersEncoding: String] = [
                .json: "application/json", .formURL: "application/x-www-form-urlencoded",
            ]
            for encoding in ParametersEncoding.allCases {
                let plain = try call(encoding)
                #expect(plain.request.url == (row[1] == "query" ? "\(api)/x?a=1" : "\(api)/x"), "\(row)")
                let expected = row[2] == "ignored" ? nil : types[encoding]
                #expect(plain.request.headerFields[.contentType] == expected, "\(row)")
                let sent = try await call(encoding, HTTPBody("b")).body?.collect(upTo: 16)
                #expect(sent.map { Array($0) == Array("b".utf8) } == (row[3] == "body"), "\(row)")
            }
            let parts = [MultipartPart(name: "f", data: [1])]
            if row[4] == "form" {
                let type = try call(.json, nil, parts).request.headerFields[.contentType]
                #expect(type?.hasPrefix("multipart/form-data") == true)
            } else {
                let error = #expect(throws: ResourceError.self) { try call(.json, nil, parts) }
                #expect(error.map { "\($0.number)" } == row[4], "\(row)")
            }
        }
    }

    @Test("Row 16: each protected field is refused by whatever makes the request, in any letter case")
    func fields() throws {
        let rows = try table("fields")
        #expect(rows.count == ProtectedField.table.count + 2)
        for row in rows {
            let isMultipart = row[0].hasPrefix("content-type")
            let name =
                row[0].hasPrefix("the session")
                ? WireName.sessionCookie
                : isMultipart ? "content-type" : row[0].hasPrefix("proxy-") ? "proxy-authorization" : row[0]
            for spelled in [name, name.uppercased(), name.capitalized] {
                let field = try #require(HTTPField.Name(spelled))
                let parts = isMultipart ? [MultipartPart(name: "a", data: Array("b".utf8))] : []
                let plain = ResourceRequest(
                    path: "\(api)/x", method: .post, multipartData: parts, headers: [field: "v"])
                var draft = MutableResourceRequest(
                    ResourceRequest(path: "\(api)/x", method: .post, multipartData: parts))
                draft.headers[field] = "v"
                let built = RequestBuilder(ResourceRequest(path: "\(api)/x", method: .post, multipartData: parts))
                    .setHeaders([field: "v"]).build()
                let made = ResourceRequestFactory.makeResourceRequest(
                    path: "\(api)/x", method: .post, multipartData: parts, headers: [field: "v"])
                for request in [plain, draft.immutable, built, made] {
                    let error = #expect(throws: ResourceError.self) { try request.httpCall() }
                    #expect(error?.code == .invalidHeaders, "\(spelled)")
                }
            }
        }
    }

    @Test("Row 25: a client has the calls of its own kinds, and none of the others")
    func calls() throws {
        let rows = try table("kinds")
        for client in Set(rows.map { $0[3] }) {
            let files = try FileManager.default.contentsOfDirectory(
                at: root.appending(path: "Sources/AssentResources/Clients"), includingPropertiesForKeys: nil
            ).filter { $0.lastPathComponent.hasPrefix(client) }
            let text = try files.map { try String(contentsOf: $0, encoding: .utf8) }.joined()
            let declared = Set(text.matches(of: /func (send\w+)/).map { String($0.1) })
            #expect(declared == Set(rows.filter { $0[3] == client }.map { $0[4] }), "\(client)")
        }
    }

    @Test("Each line of Swift that the page shows is a line that is compiled")
    func shownCode() throws {
        func lines(_ path: String) throws -> [String] {
            try String(contentsOf: root.appending(path: path), encoding: .utf8).components(separatedBy: "\n")
        }
        let snippets = try ["ResourceExamples", "FirstResource", "FacadeExamples", "IntegrityExamples"].flatMap {
            try lines("Snippets/\($0).swift")
        }
        let compiled = Set(snippets.map { $0.trimmingCharacters(in: .whitespaces) })
        var (isSwift, seen) = (false, 0)
        for line in try lines("docs/resources.md") {
            if line.hasPrefix("```") {
                isSwift = line == "```swift"
            } else if isSwift, !line.isEmpty {
                seen += 1
                #expect(compiled.contains(line.trimmingCharacters(in: .whitespaces)), "\(line)")
            }
        }
        #expect(seen > 20)
    }
}
