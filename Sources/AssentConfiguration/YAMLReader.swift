package import AssentCore
import Foundation
import Yams

/// One mapping of a YAML file, read key by key. A key that nobody asked for is an error, so that a misspelled setting
/// cannot silently fall back to a default.
package struct YAMLReader {
    package let file: String
    package let path: String
    package let line: Int?
    private let node: Node
    private let entries: [(key: String, line: Int?, node: Node)]
    private let asked = Locked<Set<String>>([])

    /// Reads a file's one document.
    package static func document(file: String, text: String) throws -> YAMLReader {
        let node: Node?
        do {
            node = try Yams.compose(yaml: text)
        } catch let error as YamlError {
            throw ConfigurationError(
                file: file, line: Self.line(of: error), "this is not YAML: \(Self.text(of: error))")
        }
        guard let node else { throw ConfigurationError(file: file, line: nil, "the file is empty") }
        return try YAMLReader(node, file: file, path: "")
    }

    private init(_ node: Node, file: String, path: String) throws {
        self.file = file
        self.path = path
        self.node = node
        line = node.mark?.line
        guard case .mapping(let mapping) = node else {
            throw ConfigurationError(
                file: file, line: node.mark?.line, "\(path.isEmpty ? "the file" : path) must be a mapping")
        }
        var entries: [(key: String, line: Int?, node: Node)] = []
        for (key, value) in mapping {
            guard let name = key.scalar?.string else {
                throw ConfigurationError(file: file, line: key.mark?.line, "a key must be a plain text")
            }
            guard !entries.contains(where: { $0.key == name }) else {
                throw ConfigurationError(file: file, line: key.mark?.line, "\(name) occurs twice")
            }
            entries.append((name, key.mark?.line, value))
        }
        self.entries = entries
    }

    /// All keys in their order; asking for them counts as reading each.
    package var keys: [String] { entries.map(\.key) }

    package func error(_ key: String?, _ message: String) -> ConfigurationError {
        let place = key.flatMap { key in entries.first { $0.key == key }?.line } ?? line
        return ConfigurationError(file: file, line: place, message)
    }

    /// Refuses the keys that nobody asked for.
    package func finish() throws {
        let asked = asked.withLock { $0 }
        for entry in entries where !asked.contains(entry.key) {
            let known = asked.sorted().joined(separator: ", ")
            throw ConfigurationError(
                file: file, line: entry.line,
                "unknown key \(name(entry.key)); known here: \(known)")
        }
    }

    package func has(_ key: String) -> Bool { node(key) != nil }

    package func optionalString(_ key: String) throws -> String? {
        guard let node = node(key) else { return nil }
        guard let text = node.scalar?.string else { throw error(key, "\(name(key)) must be a text") }
        return text
    }

    package func string(_ key: String) throws -> String {
        guard let text = try optionalString(key) else { throw error(nil, "\(name(key)) is missing") }
        return text
    }

    package func optionalBool(_ key: String) throws -> Bool? {
        guard let node = node(key) else { return nil }
        guard let value = node.bool else { throw error(key, "\(name(key)) must be true or false") }
        return value
    }

    package func bool(_ key: String, default value: Bool) throws -> Bool { try optionalBool(key) ?? value }

    package func optionalInteger(_ key: String, in range: ClosedRange<Int>) throws -> Int? {
        guard let node = node(key) else { return nil }
        guard let value = node.int, range.contains(value) else {
            throw error(key, "\(name(key)) must be a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return value
    }

    package func integer(_ key: String, default value: Int, in range: ClosedRange<Int>) throws -> Int {
        try optionalInteger(key, in: range) ?? value
    }

    package func strings(_ key: String) throws -> [String] {
        guard let node = node(key) else { return [] }
        guard case .sequence(let sequence) = node else { throw error(key, "\(name(key)) must be a list of texts") }
        return try sequence.map { element in
            guard let text = element.scalar?.string else {
                throw ConfigurationError(file: file, line: element.mark?.line, "\(name(key)) must be a list of texts")
            }
            return text
        }
    }

    package func optionalMapping(_ key: String) throws -> YAMLReader? {
        guard let node = node(key) else { return nil }
        return try YAMLReader(node, file: file, path: name(key))
    }

    package func mapping(_ key: String) throws -> YAMLReader {
        guard let reader = try optionalMapping(key) else { throw error(nil, "\(name(key)) is missing") }
        return reader
    }

    /// The mappings under a mapping's keys, in their order.
    package func mappings(_ key: String) throws -> [(key: String, value: YAMLReader)] {
        guard let outer = try optionalMapping(key) else { return [] }
        return try outer.keys.map { ($0, try outer.mapping($0)) }
    }

    /// The mappings of a list.
    package func list(_ key: String) throws -> [YAMLReader] {
        guard let node = node(key) else { return [] }
        guard case .sequence(let sequence) = node else { throw error(key, "\(name(key)) must be a list") }
        return try sequence.enumerated().map { try YAMLReader($1, file: file, path: "\(name(key))[\($0)]") }
    }

    /// A value as JSON: for settings whose shape somebody else knows.
    package func json(_ key: String) throws -> JSONValue? {
        try node(key).map { try Self.json($0, file: file) }
    }

    /// The line of something in this mapping, by its path, for example `policies[0].condition.type`; the nearest place above it
    /// that exists, when it does not.
    package func line(below path: String) -> Int? {
        var current = node
        var found = line
        for step in path.split(whereSeparator: { $0 == "." || $0 == "[" }) {
            let next: Node?
            if step.hasSuffix("]"), case .sequence(let sequence) = current {
                next = Int(step.dropLast()).flatMap { sequence.indices.contains($0) ? sequence[$0] : nil }
            } else if case .mapping(let mapping) = current {
                let entry = mapping.first { $0.key.scalar?.string == String(step) }
                found = entry?.key.mark?.line ?? found
                next = entry?.value
            } else {
                next = nil
            }
            guard let next else { return found }
            if step.hasSuffix("]") { found = next.mark?.line ?? found }
            current = next
        }
        return found
    }

    private func name(_ key: String) -> String { path.isEmpty ? key : "\(path).\(key)" }

    private func node(_ key: String) -> Node? {
        asked.withLock { _ = $0.insert(key) }
        return entries.first { $0.key == key }?.node
    }

    private static func json(_ node: Node, file: String) throws -> JSONValue {
        switch node {
        case .scalar(let scalar):
            if scalar.style == .plain || scalar.style == .any {
                if node.null != nil { return .null }
                if let value = node.bool { return .bool(value) }
                if let value = node.int { return .integer(value) }
                if let number = node.float.flatMap({ JSONNumber($0) }) { return .number(number) }
            }
            return .string(scalar.string)
        case .sequence(let sequence): return .array(try sequence.map { try json($0, file: file) })
        case .mapping(let mapping):
            return .object(
                JSONObject(
                    try mapping.map { key, value in
                        guard let name = key.scalar?.string else {
                            throw ConfigurationError(file: file, line: key.mark?.line, "a key must be a plain text")
                        }
                        return JSONObject.Member(name: name, value: try json(value, file: file))
                    }))
        case .alias:
            throw ConfigurationError(file: file, line: node.mark?.line, "aliases cannot stand here")
        }
    }

    private static func line(of error: YamlError) -> Int? {
        switch error {
        case .scanner(_, _, let mark, _), .parser(_, _, let mark, _), .composer(_, _, let mark, _): mark.line
        case .duplicatedKeysInMapping(_, let context): context.mark.line
        default: nil
        }
    }

    private static func text(of error: YamlError) -> String {
        switch error {
        case .scanner(_, let problem, _, _), .parser(_, let problem, _, _), .composer(_, let problem, _, _): problem
        case .duplicatedKeysInMapping(let keys, _): "the keys \(keys) occur twice"
        default: "it cannot be read"
        }
    }
}
