// SPDX-License-Identifier: ISC
/**
 * The API's objects. api-types.d.ts is generated from the OpenAPI document when the
 * types are checked; a browser never loads it.
 * @typedef {import('./api-types').components['schemas']} Schemas
 * @typedef {Schemas['DeploymentSummary']} DeploymentSummary
 * @typedef {Schemas['Deployment']} Deployment
 * @typedef {Schemas['DeploymentStep']} DeploymentStep
 * @typedef {Schemas['ProjectSummary']} ProjectSummary
 * @typedef {Schemas['Project']} Project
 * @typedef {Schemas['BoardProject']} BoardProject
 * @typedef {Schemas['BoardEnvironment']} BoardEnvironment
 * @typedef {Schemas['BoardDeployment']} BoardDeployment
 * @typedef {Schemas['Pipeline']} Pipeline
 * @typedef {Schemas['PipelineStep']} PipelineStep
 * @typedef {Schemas['Environment']} Environment
 * @typedef {Schemas['EnvPreset']} EnvPreset
 * @typedef {Schemas['Lock']} Lock
 * @typedef {Schemas['Template']} Template
 * @typedef {Schemas['User']} User
 * @typedef {Schemas['ApiTokenSummary']} ApiToken
 * @typedef {Schemas['Schedule']} Schedule
 * @typedef {Schemas['DeployKey']} DeployKey
 * @typedef {Schemas['DeviceRequest']} DeviceRequest
 * @typedef {Schemas['Member']} Member
 * @typedef {Schemas['Notifier']} Notifier
 * @typedef {Schemas['Runner']} Runner
 * @typedef {Schemas['AuditEntry']} AuditEntry
 * @typedef {Schemas['ImportResult']} ImportResult
 * @typedef {Schemas['Variable']} Variable
 * @typedef {Schemas['GitBranch']} GitBranch
 * @typedef {Schemas['GitCommit']} GitCommit
 * @typedef {Schemas['GitRepository']} GitRepository
 */
export {};
