import ArgumentParser
import AssentServer
import Foundation
import TestSupport
import Testing

@testable import AssentCLI

/// What the pages have for people to type. Other tests run the lines that most people follow; here each is read.
@Suite("The commands that the pages show")
struct PageCommandTests {
    /// A command of a page.
    private struct Shown: CustomStringConvertible {
        let place: String
        let words: [String]

        var description: String { "\(place): \(words.joined(separator: " "))" }

        /// What stands behind `assent`; `nil` when it is another program.
        var arguments: [String]? {
            let words = words.drop { $0.contains("=") && !$0.hasPrefix("-") }
            guard words.first?.split(separator: "/").last == "assent" else { return nil }
            return Array(words.dropFirst())
        }
    }

    private static func shown() throws -> [Shown] {
        try DocumentedPage.all().flatMap { page in
            page.blocks.filter { $0.language == "console" || $0.language == "sh" }.flatMap { block in
                block.commands.flatMap { ShellLine($0).commands }.map {
                    Shown(place: "\(page.path):\(block.line)", words: $0)
                }
            }
        }
    }

    /// What the program says of arguments that it does not take; `nil` when it takes them.
    private static func fault(in arguments: [String]) -> String? {
        if let words = Misspelling.words(about: arguments, in: AssentCommand.self) { return words }
        do {
            _ = try AssentCommand.parseAsRoot(arguments)
            return nil
        } catch {
            // The version, the help and a script for completion end the program without a fault.
            return AssentCommand.exitCode(for: error).isSuccess ? nil : AssentCommand.message(for: error)
        }
    }

    @Test("Each line of 'assent' in a block is one that the program takes")
    func lines() throws {
        let shown = try Self.shown()
        #expect(shown.count { $0.arguments != nil } > 100)
        for command in shown {
            guard let arguments = command.arguments else { continue }
            let fault = Self.fault(in: arguments)
            #expect(fault == nil, "\(command): \(fault ?? "")")
        }
    }

    /// What is wrong with a name as a sentence has it, for example `assent users … --end`; `nil` when nothing is.
    private static func fault(inName words: [String]) -> String? {
        var command: any ParsableCommand.Type = AssentCommand.self
        var rest = words[...]
        while let word = rest.first, !command.configuration.subcommands.isEmpty, isName(word) {
            guard let found = command.configuration.subcommands.first(where: { $0._commandName == word }) else {
                return "there is no command \(word)"
            }
            command = found
            rest = rest.dropFirst()
        }
        let help = AssentCommand.helpMessage(for: command, includeHidden: false, columns: 200)
        let known = Set(help.split { !$0.isLetter && !$0.isNumber && $0 != "-" }.map(String.init))
        let missing = rest.first { $0.hasPrefix("--") && $0 != "--" && !known.contains($0) }
        return missing.map { "\(command._commandName) has no \($0)" }
    }

    private static func isName(_ word: String) -> Bool {
        !word.hasPrefix("-") && word.utf8.allSatisfy { (0x61...0x7A).contains($0) || $0 == 0x2D }
    }

    @Test("Each command and each option of it that a page names in a sentence exists")
    func names() throws {
        var count = 0
        for page in try DocumentedPage.all() {
            for name in page.prose.matches(of: /`assent\s([^`]+)`/).map({ String($0.output.1) }) {
                guard let words = ShellLine(name).commands.first, words.first != "help" else { continue }
                count += 1
                let fault = Self.fault(inName: words)
                #expect(fault == nil, "\(page.path): assent \(name): \(fault ?? "")")
            }
        }
        #expect(count > 80)
        // What is not there is found.
        #expect(Self.fault(inName: ["admin", "keys", "rotated"]) != nil)
        #expect(Self.fault(inName: ["users", "sessions", "USER", "--ended"]) != nil)
    }

    /// The commands that do something below one, each by its words.
    private static func commands(below command: any ParsableCommand.Type) -> [String] {
        command.configuration.subcommands.flatMap { next -> [String] in
            let deeper = commands(below: next)
            return deeper.isEmpty ? [next._commandName] : deeper.map { "\(next._commandName) \($0)" }
        }
    }

    @Test("The page about the command line lists each command once, and no other")
    func all() throws {
        let listed = try DocumentedPage("docs/command-line.md").names(under: "All commands")
        #expect(listed.sorted() == Self.commands(below: AssentCommand.self).sorted())
    }

    @Test("docs/operating.md says what each key of a client's file means")
    func clientKeys() throws {
        let directory = DocumentedPage.root + "/Sources/AssentCLI/Profile"
        var keys: Set<String> = []
        for file in try FileManager.default.contentsOfDirectory(atPath: directory) where file.hasPrefix("ClientFile") {
            let text = try String(contentsOfFile: "\(directory)/\(file)", encoding: .utf8)
            let reads = text.matches(of: /reader\.(?:string|optionalString|mapping|optionalMapping)\("([A-Za-z]+)"/)
            keys.formUnion(reads.map { String($0.output.1) })
        }
        #expect(keys.isSuperset(of: ["server", "client", "pins", "trust", "integrity"]))
        let named = try DocumentedPage("docs/operating.md").names(under: "The clients' file")
        let words = Set(named.flatMap { $0.split { !$0.isLetter }.map(String.init) })
        #expect(keys.isSubset(of: words), "\(keys.subtracting(words).sorted())")
    }

    @Test("The unit for systemd starts the program as it wants to be started, and waits longer than a stop takes")
    func unit() throws {
        let page = try DocumentedPage("docs/operating.md")
        let unit = try #require(page.blocks("ini", under: "Install").first)
        let settings = unit.text.split(separator: "\n").filter { $0.contains("=") && !$0.hasPrefix("#") }
        func value(_ key: String) -> String? {
            settings.first { $0.hasPrefix("\(key)=") }.map { String($0.dropFirst(key.count + 1)) }
        }
        let start = try #require(value("ExecStart"))
        let words = try #require(ShellLine(start).commands.first)
        #expect(words.first == "/usr/local/bin/assent")
        #expect(Self.fault(in: Array(words.dropFirst())) == nil)
        // The bank's file does not say how long a stop waits, so it has the value of every file that does not.
        let usual = try ServerConfiguration.load(file: DocumentedPage.root + "/Examples/bank/assent.yaml").drainSeconds
        #expect(unit.text.contains("# Ten seconds more than drainSeconds.\nTimeoutStopSec="))
        #expect(value("TimeoutStopSec") == "\(usual + 10)")
        #expect(value("StateDirectoryMode") == "0700" && value("User") == value("StateDirectory"))
    }

    @Test("Each script, each target of make and each program of ours that a block names is there")
    func others() throws {
        func text(_ path: String) throws -> String {
            try String(contentsOfFile: DocumentedPage.root + "/" + path, encoding: .utf8)
        }
        let (makefile, manifest) = (try text("Makefile"), try text("Package.swift"))
        for command in try Self.shown() {
            if command.words.first == "make" {
                for target in command.words.dropFirst() where !target.contains("=") {
                    #expect(makefile.contains("\n\(target):"), "\(command)")
                }
            }
            for (before, word) in zip([""] + command.words, command.words) {
                let path = word.hasPrefix("./") ? String(word.dropFirst(2)) : word
                // What a server writes beside its file is not there before its first start.
                let isOurs = ["Scripts/", "Tests/", "Examples/", "Sources/", "Snippets/"].contains {
                    path.hasPrefix($0)
                }
                if isOurs, !path.contains("/.assent/") {
                    #expect(FileManager.default.fileExists(atPath: DocumentedPage.root + "/" + path), "\(command)")
                }
                if before == "--product" || path.hasPrefix(".build/debug/") {
                    let name = path.split(separator: "/").last.map(String.init) ?? ""
                    #expect(manifest.contains("name: \"\(name)\""), "\(command)")
                }
            }
        }
    }

    @Test("An app depends on the package by the same lines on each page")
    func dependency() throws {
        func lines(_ page: String) throws -> [String] {
            try DocumentedPage(page).blocks.filter { $0.language == "text" }.map(\.text).filter {
                $0.hasPrefix(".package(")
            }
        }
        let readme = try lines("README.md")
        #expect(readme.count == 1)
        #expect(try lines("Sources/Assent/Assent.docc/FirstProtectedCall.md") == readme)
    }
}
