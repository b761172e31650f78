# SPDX-License-Identifier: ISC
"""A client that openapi-python-client has made: signs in by a token, deploys
and prints the log.

usage: client.py URL TOKEN REPOSITORY CERTIFICATES
"""
import ssl
import sys

from made import AuthenticatedClient
from made.api.auth import get_current_user
from made.api.deployments import (create_deployment, get_deployment, get_log,
                                  list_deployments)
from made.api.pipelines import create_pipeline
from made.api.projects import create_project, get_project, update_project
from made.models import (DeploymentRequestInput, DeploymentStatus, EnvVars,
                         EnvPresetInput, PipelineInput, PipelineStepInput,
                         PresetType, Problem, ProjectInput, ProjectUpdate,
                         Role)

url, token, repository, certificates = sys.argv[1:]
client = AuthenticatedClient(
    base_url=url, token=token,
    verify_ssl=ssl.create_default_context(cafile=certificates))


def done(answer):
    if answer is None or isinstance(answer, Problem):
        sys.exit('refused: %s' % answer)
    return answer


me = done(get_current_user.sync(client=client))
assert isinstance(me.role, Role)
project = done(create_project.sync(client=client, body=ProjectInput(
    name='made by openapi-python-client', repository=repository,
    default_branch='main', env_presets=[EnvPresetInput(
        key='GREETING', label='Greeting', type_=PresetType.INPUT,
        default='hello')])))
read = done(get_project.sync(project.id, client=client))
same = done(update_project.sync(
    project.id, client=client, body=ProjectUpdate.from_dict(read.to_dict())))
assert same.created_at == read.created_at
pipeline = done(create_pipeline.sync(client=client, body=PipelineInput(
    project_id=project.id, name='Greet', steps=[PipelineStepInput(
        name='Greet',
        script='echo "$GREETING $NAME from %s"' % me.role.value)])))
variables = EnvVars()
variables['NAME'] = 'openapi-python-client'
made = done(create_deployment.sync(
    client=client, idempotency_key='openapi-python-client',
    body=DeploymentRequestInput(
        project_id=project.id, pipeline_id=pipeline.id, env_vars=variables)))
now = made
while now.status in (DeploymentStatus.PENDING, DeploymentStatus.RUNNING):
    get_log.sync(made.id, client=client, offset=now.log_size, wait=1)
    now = done(get_deployment.sync(made.id, client=client))
page = done(list_deployments.sync(client=client, limit=1,
                                  project_id=project.id))
if page.pagination.next_ is not None:
    done(list_deployments.sync(client=client, cursor=page.pagination.next_))
print(now.status.value if page.data[0].id == made.id else 'not listed')
print(done(get_log.sync(made.id, client=client)))
