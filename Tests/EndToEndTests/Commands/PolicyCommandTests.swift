import AssentCore
import AssentPeers
import Foundation
import TestSupport
import Testing

/// Each test runs the program, with nobody to ask.
@Suite("assent policy, as a program")
struct PolicyCommandTests {
    private static let batch = World.package.appendingPathComponent("Examples/policies/batch.yaml").path
    private static let url = "https://localhost:8444/batches"
    private static let body =
        #"{"debtor":{"iban":"DE89370400440532013000"},"payments":[{"creditor":{"name":"Zoë"},"amount":"1.50","currency":"EUR"}]}"#

    /// A policy of AM's as its export has it.
    private static func policy(_ more: String = "") -> String {
        #"""
        {"name":"pay","active":true,"applicationName":"bank","resourceTypeUuid":"u1","resources":["https://a.example:443/*"],
        "actionValues":{"POST":true},"subject":{"type":"AuthenticatedUsers"}\#(more)}
        """#
    }

    private func run(_ arguments: String...) async throws -> Program.Result {
        try await run(arguments)
    }

    private func run(_ arguments: [String]) async throws -> Program.Result {
        let directory = try TemporaryDirectory()
        defer { withExtendedLifetime(directory) {} }
        return try await Program(below: directory.path("of-program"), client: "").run(["policy"] + arguments)
    }

    /// Runs the import of a file with this text.
    private func imported(_ text: String, _ options: String...) async throws -> Program.Result {
        let directory = try TemporaryDirectory()
        defer { withExtendedLifetime(directory) {} }
        let file = directory.path("export.json")
        try Data(text.utf8).write(to: URL(fileURLWithPath: file))
        return try await run(["import"] + options + [file])
    }

    // MARK: - test

    @Test("What would be approved is printed in the language that is asked for, and the status is 0")
    func trial() async throws {
        for (language, label) in [("en", "Amount"), ("de", "Betrag")] {
            let result = try await run(
                "test", "--config", Self.batch, "--user", "ana", "--language", language, "POST", Self.url, "--data",
                Self.body)
            #expect(result.status == 0 && result.errors.isEmpty, "\(result.errors)")
            #expect(result.output.contains("✓ pay: it applies, and grants pay once its transaction is approved"))
            #expect(result.output.contains("  \(label): 1.50 EUR"), "\(result.output)")
        }
    }

    @Test("The line that docs/journeys-and-policies.md shows prints what stands below it")
    func page() async throws {
        let block = try #require(
            DocumentedPage("docs/journeys-and-policies.md").blocks("console", under: "Try policies").first)
        let directory = try TemporaryDirectory()
        defer { withExtendedLifetime(directory) {} }
        let program = try Program(below: directory.path("of-program"), client: "")
        try FileManager.default.copyItem(atPath: World.configurationFile, toPath: program.home + "/assent.yaml")
        let command = try #require(block.commands.first)
        let result = try await program.type(command)
        #expect(block.commands.count == 1 && result.status == 0, "\(result)")
        #expect(result.output == block.output, "\(result.output)")
    }

    @Test("A script gets the same as JSON")
    func json() async throws {
        let result = try await run(
            "test", "--json", "--config", Self.batch, "--user", "ana", "POST", Self.url, "--data", Self.body)
        let json = try JSONValue.parse(result.output)
        #expect(result.status == 0 && json["result"] == "transaction")
        #expect(json["shown"]?.array?.count == 3 && json["policies"]?.array?.first?["field"] == "actionValues")
    }

    @Test("What is denied or refused ends with status 2, and says which field it was")
    func denied() async throws {
        let nobody = try await run("test", "--config", Self.batch, "POST", Self.url, "--data", Self.body)
        #expect(nobody.status == 2 && nobody.output.contains("– pay: subject: it is for others"), "\(nobody.output)")
        let unseen = try await run(
            "test", "--config", Self.batch, "--user", "ana", "POST", Self.url, "--data", #"{"iban":"x"}"#)
        #expect(unseen.status == 2 && unseen.output.contains("refused: "), "\(unseen.output)")
        let elsewhere = try await run(
            "test", "--config", Self.batch, "--user", "ana", "GET", "https://localhost:8444/other")
        #expect(elsewhere.status == 2 && elsewhere.output.contains("resources: no pattern covers it"))
    }

    @Test("Wrong words are usage, and a file, realm or set that is not there is named")
    func mistakes() async throws {
        for arguments in [
            ["POST"], ["POST", "not a url"], ["POST", Self.url, "--address", "x"],
            ["POST", Self.url, "--minutes", "600000"], ["POST", Self.url, "--network-days", "1"],
            ["POST", Self.url, "--level", "high"],
        ] {
            let result = try await run(["test", "--config", Self.batch] + arguments)
            #expect(result.status == 64 && result.output.isEmpty, "\(arguments): \(result)")
        }
        let missing = try await run("test", "--config", "/nowhere/assent.yaml", "POST", Self.url)
        #expect(missing.status == 78 && missing.errors.contains("/nowhere/assent.yaml"), "\(missing)")
        let realm = try await run("test", "--config", Self.batch, "--realm", "beta", "POST", Self.url)
        #expect(realm.status == 78 && realm.errors.contains("no realm /beta; known: /alpha"), "\(realm)")
        let set = try await run("test", "--config", Self.batch, "--policy-set", "shop", "POST", Self.url)
        #expect(set.status == 78 && set.errors.contains("known: batches"), "\(set)")
    }

    // MARK: - import

    @Test("AM's list becomes YAML that a server's file can have, and the status is 0")
    func whole() async throws {
        let result = try await imported("[\(Self.policy())]", "--realm", "alpha")
        #expect(result.status == 0 && result.errors.isEmpty, "\(result)")
        #expect(result.output.hasPrefix("policySets:\n  \"bank\":\n    policies:\n      - name: \"pay\"\n"))
        let directory = try TemporaryDirectory()
        defer { withExtendedLifetime(directory) {} }
        let text = try String(contentsOfFile: Self.batch, encoding: .utf8)
        let start = try #require(text.range(of: "    policySets:\n"))
        let sets = result.output.split(separator: "\n").map { "    \($0)\n" }.joined()
        let file = directory.path("assent.yaml")
        try (text[..<start.lowerBound] + sets).write(
            to: URL(fileURLWithPath: file), atomically: true, encoding: .utf8)
        let trial = try await run("test", "--config", file, "--user", "ana", "POST", "https://a.example/x")
        #expect(trial.status == 0 && trial.output.contains("granted: "), "\(trial)")
    }

    @Test("What cannot be kept is named on standard error, with status 1, and the rest is printed")
    func partly() async throws {
        let condition = #","condition":{"type":"Script","scriptId":"s"}"#
        let result = try await imported("[\(Self.policy()),\(Self.policy(condition)),7]", "--realm", "/alpha")
        #expect(result.status == 1 && result.output.components(separatedBy: "- name:").count == 2)
        for note in ["bank, pay: left out: condition", "policies[2]: left out"] {
            #expect(result.errors.contains(note), "\(result.errors)")
        }
        let json = try await imported("[\(Self.policy(condition))]", "--json")
        let read = try JSONValue.parse(json.output)
        #expect(json.status == 1 && read["policies"] == 0 && read["notes"]?.array?.isEmpty == false)
        #expect(read["yaml"] == "policySets: {}\n")
    }

    @Test(
        "An export of wrong types makes no policy, and never one that grants more",
        arguments: [
            ("7", "must be AM's list of policies"), (#"{"result":{}}"#, "must be AM's list of policies"),
            (#"{"policies":7}"#, "must be AM's list of policies"), ("{", "is not JSON"), ("", "is not JSON"),
            (#"[{"name":7}]"#, "it is not a policy"), ("[[]]", "it is not a policy"), ("[null]", "it is not a policy"),
            (#"[{"name":"p"}]"#, "left out"), (#"[{"name":"p","resources":"x"}]"#, "left out"),
        ])
    func wrongTypes(text: String, message: String) async throws {
        let result = try await imported(text)
        #expect(result.status == 1 && result.errors.contains(message), "\(result)")
        #expect(!result.output.contains("name:"))
    }

    @Test(
        "A member of a policy that has a wrong type leaves the policy out",
        arguments: [
            ("\"resources\":[\"https://a.example:443/*\"]", "\"resources\":{\"a\":1}"),
            ("\"actionValues\":{\"POST\":true}", "\"actionValues\":{\"POST\":\"yes\"}"),
            ("\"actionValues\":{\"POST\":true}", "\"actionValues\":[\"POST\"]"),
            ("\"subject\":{\"type\":\"AuthenticatedUsers\"}", "\"subject\":\"AuthenticatedUsers\""),
            ("\"subject\":{\"type\":\"AuthenticatedUsers\"}", "\"subject\":{\"type\":7}"),
            ("\"subject\":{\"type\":\"AuthenticatedUsers\"}", "\"subject\":null"),
            ("\"subject\":", "\"condition\":[],\"subject\":"),
            ("\"subject\":", "\"condition\":{\"type\":\"AND\",\"conditions\":7},\"subject\":"),
        ])
    func wrongMembers(find: String, replacement: String) async throws {
        let policy = Self.policy()
        try #require(policy.contains(find))
        let result = try await imported("[\(policy.replacing(find, with: replacement))]")
        #expect(result.status == 1 && result.errors.contains("bank, pay: left out"), "\(result)")
        #expect(!result.output.contains("name:"))
    }

    @Test("A file that is not there, or is a directory, is said; and so is that the file is missing")
    func files() async throws {
        let missing = try await run("import", "/nowhere/export.json")
        #expect(missing.status == 1 && missing.errors.contains("there is no such file"), "\(missing)")
        let directory = try await run("import", "/tmp")
        #expect(directory.status == 1 && directory.errors.contains("/tmp cannot be read"), "\(directory)")
        let nothing = try await run("import")
        #expect(nothing.status == 64 && nothing.output.isEmpty)
    }
}
