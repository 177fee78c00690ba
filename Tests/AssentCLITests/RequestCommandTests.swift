import ArgumentParser
import Assent
import AssentCore
import Foundation
import HTTPTypes
import Testing

@testable import AssentCLI

@Suite("assent request: what is sent, and what is refused before that")
struct RequestCommandTests {
    private static let base = "https://api.bank.example/v1"

    private func command(_ arguments: [String]) throws -> RequestCommand {
        try #require(try AssentCommand.parseAsRoot(["request"] + arguments) as? RequestCommand)
    }

    private func sent(_ arguments: String...) async throws -> (url: String?, type: String?, content: String) {
        let call = try command(arguments).request().httpCall(base: Self.base)
        let bytes = try await call.body?.collect(upTo: 1 << 16) ?? []
        return (call.request.url, call.request.headerFields[.contentType], String(decoding: bytes, as: UTF8.self))
    }

    @Test("A path is below the base, an absolute URL stays what it is, and parameters are in the URL or the content")
    func parameters() async throws {
        let read = try await sent(
            "GET", "/accounts", "--param", "kind=savings", "--param", "a=x=y&z", "--param", "kind=")
        #expect(read.url == "\(Self.base)/accounts?a=x%3Dy%26z&kind=savings&kind=")
        #expect(read.type == nil && read.content.isEmpty)
        let posted = try await sent("post", "transfers", "--param", "to=Bob", "--param", "n=1", "--param", "n=2")
        #expect(posted.url == "\(Self.base)/transfers" && posted.type == "application/json")
        #expect(try JSONValue.parse(posted.content) == ["to": "Bob", "n": ["1", "2"]])
        let form = try await sent("PUT", "transfers", "--form", "--param", "to=Bob & Co")
        #expect(form.type == "application/x-www-form-urlencoded" && form.content.hasPrefix("to=Bob"))
        #expect(try FormEncoding.parse(Array(form.content.utf8))["to"] == "Bob & Co")
        #expect(
            try await sent("DELETE", "https://other.example/x", "--param", "a=1").url == "https://other.example/x?a=1")
        #expect(try await sent("HEAD", "/status").url == "\(Self.base)/status")
        let json = try await sent("POST", "/t", "--data", #"{"a":1}"#)
        #expect(json.type == "application/json" && json.content == #"{"a":1}"#)
    }

    @Test("A form with files has the parameters as fields and the files with their names and content")
    func multipart() async throws {
        let home = try VaultCommandTests.Home()
        let file = try home.file("page 1.txt", "first page")
        let form = try await sent("POST", "documents", "--multipart", "scan=@\(file)", "--param", "title=Contract")
        #expect(form.type?.hasPrefix("multipart/form-data; boundary=") == true)
        for text in [
            #"name="title""#, "Contract", #"name="scan"; filename="page 1.txt""#, "application/octet-stream",
            "first page",
        ] { #expect(form.content.contains(text), "\(text)") }
    }

    @Test(
        "What cannot be read, contradicts something else or would do nothing is refused with the usage",
        arguments: [
            ["TRACE", "/a"], ["GET /a"], ["GET"], ["--as", "implicitly", "GET", "/a"], ["--as", "DEVICE", "GET", "/a"],
            ["--as", "", "GET", "/a"], ["GET", "/a", "--param", "novalue"], ["GET", "/a", "--param", "=v"],
            ["GET", "/a", "--param"], ["GET", "/a", "--multipart", "a=@/etc/hostname"],
            ["PUT", "/a", "--multipart", "a=@/etc/hostname"], ["POST", "/a", "--multipart", "a=/etc/hostname"],
            ["POST", "/a", "--multipart", "=@/etc/hostname"], ["POST", "/a", "--multipart", "a=@"],
            ["POST", "/a", "--multipart", "a=@/etc/hostname", "--data", "{}"],
            ["POST", "/a", "--multipart", "a=@/etc/hostname", "--form", "--param", "a=b"],
            ["POST", "/a", "--multipart", "a=@/etc/hostname", "-H", "Content-Type: text/plain"],
            ["GET", "/a", "--form", "--param", "a=b"], ["POST", "/a", "--form"],
            ["POST", "/a", "--param", "a=b", "--data", "{}"], ["POST", "/a", "--param", "a=b", "--data-file", "x"],
            ["HEAD", "/a", "--download", "x"], ["GET", "/a", "--download", "-"], ["GET", "/a", "--download", ""],
            ["GET", "/a", "--download", "x", "--ask", "t"], ["--as", "nobody", "GET", "/a", "--ask", "t"],
            ["GET", "/a", "--scope", "app-data"], ["--as", "nobody", "GET", "/a", "--scope", "app-data"],
            ["--as", "implicit", "GET", "/a", "--pin"], ["--as", "device", "GET", "/a", "--pin"],
            ["--as", "nobody", "GET", "/a", "--pin"], ["GET", "/a", "--username", "ana"],
            ["--as", "device", "GET", "/a", "--username", "ana"], ["--as", "implicit", "GET", "/a", "--ask", "t"],
            ["GET", "/a", "--pin", "--scope", "accounts"], ["GET", "/a", "--pin", "0042"],
            ["GET", "/a", "--json", "--include"],
        ])
    func refused(arguments: [String]) throws {
        let told = try VaultCommandTests.Home().refusal(["request"] + arguments)
        #expect(told.status == 64 && told.err.contains("Error: "), "\(arguments): \(told.status) \(told.err)")
    }

    @Test("A file that is missing or is none is named with the reason, and nothing is sent")
    func missingFile() throws {
        for file in ["/nowhere/page.png", "/tmp"] {
            let error = #expect(throws: CommandFailure.self) {
                try command(["POST", "/a", "--multipart", "scan=@\(file)"]).request()
            }
            let text = error?.description ?? ""
            #expect(text.contains("\(file) cannot be read") && text.contains("Nothing was sent."), "\(text)")
        }
    }

    @Test("A path without an address to append it to says what to write")
    func withoutBase() throws {
        let error = #expect(throws: CommandFailure.self) { try command(["GET", "/a"]).check(base: nil) }
        #expect(error?.description.contains("resources.base") == true)
        let absolute = try command(["GET", "https://a.example/x"]).request()
        #expect(absolute.path == "https://a.example/x")
    }

    @Test("The help has an example of each kind")
    func help() throws {
        let told = try VaultCommandTests.Home().run("request", "--help")
        #expect(told.status == 0)
        for text in [
            "--as device", "--as nobody", "--as implicit", "request --pin", "--multipart", "--param", "--download",
            "resources.base",
        ] {
            #expect(told.out.contains(text), "\(text)")
        }
    }
}
