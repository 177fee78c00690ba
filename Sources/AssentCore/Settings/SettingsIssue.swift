/// What is wrong with a setting and where it stands. A reader of files adds the file and the line.
package struct SettingsIssue: Error, Hashable, Sendable, CustomStringConvertible {
    /// The place of the setting, for example `policies[2].condition`; empty for all of the settings.
    package let path: String

    /// What is wrong and what would be right. Never a secret.
    package let message: String

    /// An issue.
    package init(path: String, _ message: String) {
        self.path = path
        self.message = message
    }

    /// The place and the message.
    package var description: String { path.isEmpty ? message : "\(path): \(message)" }

    /// The same issue, seen from the settings around: `outer` is where they have what this issue's path begins at.
    package func inside(_ outer: String) -> SettingsIssue {
        SettingsIssue(path: Self.join(outer, path), message)
    }

    /// The path of `inner` below `outer`.
    package static func join(_ outer: String, _ inner: String) -> String {
        if outer.isEmpty || inner.isEmpty || inner.hasPrefix("[") { return outer + inner }
        return "\(outer).\(inner)"
    }
}

/// Everything that is wrong with some settings.
package struct SettingsIssues: Error, Hashable, Sendable, CustomStringConvertible {
    /// The issues, in the order in which they were found; never empty.
    package let issues: [SettingsIssue]

    /// These issues, or `nil` when there are none.
    package init?(_ issues: [SettingsIssue]) {
        guard !issues.isEmpty else { return nil }
        self.issues = issues
    }

    /// One line for each.
    package var description: String { issues.map(\.description).joined(separator: "\n") }
}
